// SPDX-License-Identifier: Apache-2.0
//
// The scan skeleton: running sums, products and extremes along an axis, with what is computed from
// each of them on the way; memory is read once and written once. Two layouts:
//
//   rows shared: one or more warps share a row and walk it in tiles. Each warp takes a piece of the
//     tile, in groups of neighbours a thread: threads scan their groups, lanes scan the groups'
//     totals by shuffles, warps meet in shared memory, and the row's carry goes to the next tile;
//   columns: where rows lie next to each other in memory, each thread scans a row of its own.
//
// Sums and products are carried in double, which costs a few instructions a group and keeps
// rounding from growing along the row.
#include <fmt/format.h>

#include <algorithm>

#include "target/access.hpp"
#include "target/cuda/elements.hpp"
#include "target/cuda/reduce_plan.hpp"
#include "target/scan_shape.hpp"

namespace ke::cuda {
namespace {

using ir::DType;
using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kScanWords = 16;  // of a row that a thread has in flight

struct ScanPlan {
  target::ScanShape shape;
  bool columns = false;
  int64_t widest = 1;     // neighbours that memory allows at once
  int64_t width = 1;      // neighbours that a thread handles at once
  int64_t members = 32;   // threads that share a row, whole warps
  int64_t block = 256;    // threads
  int64_t in_flight = 1;  // groups of neighbours a thread, loaded together

  const FusedStage& scan() const { return shape.kernel.stages.front(); }
  int64_t warps() const { return members / kWarpThreads; }
  int64_t rows_a_block() const { return columns ? block : block / members; }
  int64_t tile() const { return members * width * in_flight; }
};

int64_t power_below(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

// The layout that memory suggests, and whether the other one is possible.
ScanPlan suggested_scan(const Program& program, const FusedKernel& kernel, bool& either) {
  ScanPlan plan{target::scan_shape(program, kernel)};
  either = plan.shape.row_axis >= 0 && plan.shape.row_extent() >= 8;
  plan.columns = either && plan.shape.across;
  plan.widest = widest_group(program, plan.shape.kernel.stages, plan.shape.axis());
  while (plan.widest > 1 && plan.shape.length % plan.widest != 0) plan.widest /= 2;
  return plan;
}

// As many threads for one row as have enough to load each, more where rows do not fill the device.
int64_t members_for(const ScanPlan& plan, const Device& device) {
  const int64_t by_length = std::clamp<int64_t>(plan.shape.length / kScanWords, kWarpThreads, 1024);
  const int64_t by_rows = device.threads() / std::max<int64_t>(plan.shape.rows, 1);
  return power_below(std::min(by_length, std::max<int64_t>(256, by_rows)));
}

std::vector<ScheduleChoice> scan_choices(const Program& program, const FusedKernel& kernel,
                                         const Device& device) {
  bool either = false;
  ScanPlan plan = suggested_scan(program, kernel, either);
  if (plan.shape.rows == 0 || plan.shape.length == 0) return {};
  std::vector<ScheduleChoice> choices;
  if (either) {
    choices.push_back({"columns", {0, 1}, plan.columns ? 1 : 0});
    plan.columns = target::chosen(kernel, choices, "columns") != 0;
  }
  if (plan.columns) {
    const bool few = plan.shape.rows < 256 * device.multiprocessors;
    choices.push_back(powers_choice("block", 32, 1024, few ? 64 : 256));
    choices.push_back(powers_choice("in_flight", 1, 16, 8));
    return choices;
  }
  choices.push_back(
      powers_choice("threads_per_row", kWarpThreads, 1024, members_for(plan, device)));
  choices.push_back(powers_choice("block", 64, 1024, 256));
  const int64_t width = std::min<int64_t>(plan.widest, 4);
  choices.push_back(powers_choice("width", 1, std::min<int64_t>(plan.widest, 8), width));
  choices.push_back(powers_choice("in_flight", 1, kScanWords, kScanWords / width));
  return choices;
}

ScanPlan scan_plan(const Program& program, const FusedKernel& kernel, const Device& device) {
  bool either = false;
  ScanPlan plan = suggested_scan(program, kernel, either);
  const std::vector<ScheduleChoice> choices = scan_choices(program, kernel, device);
  const auto value = [&](std::string_view name, int64_t otherwise) {
    const auto named = [&](const ScheduleChoice& choice) { return choice.name == name; };
    const bool has = std::any_of(choices.begin(), choices.end(), named);
    return has ? target::chosen(kernel, choices, name) : otherwise;
  };
  plan.columns = value("columns", 0) != 0;
  plan.members = plan.columns ? 1 : value("threads_per_row", kWarpThreads);
  plan.width = value("width", 1);
  plan.in_flight = value("in_flight", 1);
  // Warps that share a row wait for each other, and for nobody else.
  plan.block = plan.members > kWarpThreads ? plan.members : value("block", 256);
  if (plan.columns) return plan;
  while (plan.in_flight > 1 && plan.tile() / 2 >= plan.shape.length) plan.in_flight /= 2;
  return plan;
}

double scan_estimate(const Program& program, const FusedKernel& kernel, const Device& device) {
  const ScanPlan plan = scan_plan(program, kernel, device);
  if (plan.shape.rows == 0 || plan.shape.length == 0) return device.launch_ns;
  KernelWork work = work_of(program, kernel);
  const double points =
      static_cast<double>(plan.shape.rows) * static_cast<double>(plan.shape.length);
  // Steps across lanes, shared by a group of neighbours.
  work.operations += points * (plan.columns ? 2 : 4 + 16.0 / static_cast<double>(plan.width));
  const double threads = static_cast<double>(plan.shape.rows * plan.members);
  const double bytes = static_cast<double>(4 * plan.width * plan.in_flight);
  return kernel_ns(work, threads, 0.95 - 2 / bytes, device);
}

// --- Printing -----------------------------------------------------------------------------------

class ScanPrinter {
 public:
  ScanPrinter(PrintContext& context, const ScanPlan& plan)
      : context_(context),
        kernel_(context.kernel),
        plan_(plan),
        scan_(plan.scan()),
        carry_(target::compute_type(target::carry_dtype(scan_))),
        type_(target::compute_type(target::block_dtype(scan_))) {
    const std::vector<ir::Axis> axes = target::axes_of(kernel_, scan_);
    const std::vector<std::string> names = axis_variables(context, axes);
    for (size_t k = 0; k < names.size(); ++k) axes_.push_back({names[k], axes[k].extent});
  }

  KernelCode run() {
    out_.open(function_head(context_, kernel_.name, plan_.block, false));
    plan_.columns ? print_columns() : print_rows();
    out_.close();
    KernelCode code;
    code.functions = out_.take();
    LaunchText launch{kernel_.name};
    launch.grid_x = (plan_.shape.rows + plan_.rows_a_block() - 1) / plan_.rows_a_block();
    launch.block = plan_.block;
    if (plan_.warps() > 1) {
      launch.shared_bytes = 2 * plan_.warps() * bytes_of(target::carry_dtype(scan_));
    }
    code.launches.push_back(launch);
    code.schedule = words();
    return code;
  }

 private:
  std::string words() const {
    const std::string& axis = scan_.inner.front().name;
    const std::string_view way = plan_.shape.backwards ? ", from its end" : "";
    if (plan_.columns) {
      return fmt::format(
          "Schedule: each thread scans a row of its own along {}{}, {} elements loaded together; "
          "blocks of {} threads.",
          axis, way, plan_.in_flight, plan_.block);
    }
    return fmt::format(
        "Schedule: {} threads share a row and scan it along {}{} in tiles of {}: {} of {} "
        "neighbours a thread; blocks of {} threads.",
        plan_.members, axis, way, plan_.tile(), plan_.in_flight, plan_.width, plan_.block);
  }

  const AxisBinding& lane() const { return axes_.back(); }
  std::string first() const { return ElementLoop::first_variable(lane(), plan_.width); }
  std::string join(const std::string& a, const std::string& b) const { return joined(scan_, a, b); }
  std::string_view row_type() const { return plan_.shape.rows <= INT32_MAX ? "int" : "int64_t"; }

  // The coordinates of `rowIndex`; neighbours are neighbours along `fastest`, when there is one.
  void print_coordinates(int fastest) {
    int64_t above = 1;
    const auto print = [&](size_t k) {
      std::string text = above == 1 ? "rowIndex" : fmt::format("rowIndex / {}", above);
      if (above * axes_[k].extent < plan_.shape.rows) text += fmt::format(" % {}", axes_[k].extent);
      out_.line(fmt::format("const {} {} = {};", index_type(axes_[k]), axes_[k].variable, text));
      above *= axes_[k].extent;
    };
    if (fastest >= 0) print(static_cast<size_t>(fastest));
    for (size_t k = kernel_.rows.size(); k-- > 0;) {
      if (static_cast<int>(k) != fastest) print(k);
    }
  }

  void open_turns() {
    out_.line("#pragma unroll");
    out_.open(
        fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)", plan_.in_flight));
  }

  // Declares where the group that is `place` elements from the scan's start begins in memory; true
  // when the rest is inside an if.
  bool open_group(const std::string& place, int64_t step) {
    const std::string_view type = index_type(lane());
    out_.line(fmt::format("const {} placeIndex = {};", type, place));
    const bool guarded = plan_.shape.length % step != 0;
    if (guarded) out_.open(fmt::format("if (placeIndex < {})", plan_.shape.length));
    out_.line(fmt::format("const {} {} = {};", type, first(),
                          plan_.shape.backwards
                              ? fmt::format("{} - placeIndex", plan_.shape.length - plan_.width)
                              : "placeIndex"));
    return guarded;
  }

  std::string element() const {
    return plan_.width == 1 ? "0" : fmt::format("{} - {}", lane().variable, first());
  }

  // valueGroup[turnIndex][…] = what is scanned.
  void print_values() {
    ElementLoop loop(context_, out_, axes_, plan_.shape.axis(), plan_.width);
    loop.prepare(scan_.body);
    loop.open();
    ScalarPrinter& printer = loop.element();
    const Value value = printer.print_cast(printer.print(scan_.body), target::scan_dtype(scan_));
    out_.line(fmt::format("valueGroup[turnIndex][{}] = {};", element(), value.text));
    loop.close();
  }

  // Stores what comes of the scan, which is `here` at each element.
  void print_results(const std::string& here) {
    ElementLoop loop(context_, out_, axes_, plan_.shape.axis(), plan_.width);
    for (const FusedStage& stage : kernel_.stages) {
      if (!stage.scan) loop.prepare(stage.body);
      loop.hold(stage.output, "");
    }
    for (const FusedStage& stage : kernel_.stages) {
      if (!is_internal(kernel_, stage.output)) loop.prepare_store(stage.output, stage.store);
    }
    loop.open();
    out_.line(fmt::format("const {} hereValue = {};", plan_.columns ? carry_ : type_, here));
    Value value{"hereValue",
                plan_.columns ? target::carry_dtype(scan_) : target::block_dtype(scan_)};
    for (const FusedStage& stage : kernel_.stages) {
      ScalarPrinter& printer = loop.element();
      if (!stage.scan) value = printer.print(stage.body);
      value = printer.print_cast(value, context_.tensor(stage.output).dtype);
      if (!is_internal(kernel_, stage.output)) loop.store(stage.output, stage.store, value);
      printer.hold(stage.output, value.text);
    }
    loop.close();
  }

  // --- Rows shared ------------------------------------------------------------------------------
  void print_rows() {
    const bool several = plan_.warps() > 1;
    const std::string row =
        plan_.rows_a_block() == 1
            ? fmt::format("({})blockIdx.x", row_type())
            : fmt::format("({0})blockIdx.x * {1} + ({0})threadIdx.x / {2}", row_type(),
                          plan_.rows_a_block(), plan_.members);
    out_.line(fmt::format("const {} rowIndex = {};", row_type(), row));
    if (plan_.shape.rows % plan_.rows_a_block() != 0) {
      out_.line(fmt::format("if (rowIndex >= {}) return;", plan_.shape.rows));
    }
    out_.line("const int laneIndex = (int)threadIdx.x % 32;");
    if (several) {
      out_.line("const int warpIndex = (int)threadIdx.x / 32;");
      out_.line(fmt::format("{0}* totalsPlace = ({0}*)ke_shared();", carry_));
    }
    print_coordinates(-1);
    out_.line(fmt::format("const auto joinBoth = []({0} a, {0} b) {{ return ({0})({1}); }};", type_,
                          join("a", "b")));
    out_.line(fmt::format("{} carryValue = {};", carry_, identity_of(scan_)));
    const int64_t length = plan_.shape.length;
    const std::string_view type = length + plan_.tile() <= INT32_MAX ? "int" : "int64_t";
    out_.open(fmt::format("for ({0} tileFirst = 0; tileFirst < {1}; tileFirst += {2})", type,
                          length, plan_.tile()));
    print_tile();
    out_.close();
  }

  std::string place() const {
    const std::string groups =
        plan_.warps() > 1 ? fmt::format("(warpIndex * {} + turnIndex)", plan_.in_flight)
                          : "turnIndex";
    return fmt::format("tileFirst + ({} * 32 + laneIndex) * {}", groups, plan_.width);
  }

  void print_tile() {
    out_.line(fmt::format("{} valueGroup[{}][{}];", type_, plan_.in_flight, plan_.width));
    open_turns();
    if (open_group(place(), plan_.tile())) {
      print_values();
      out_.close();
      out_.open("else");
      print_for_each("valueGroup[turnIndex][k] = " + identity_of(scan_) + ";");
    } else {
      print_values();
    }
    out_.close();
    if (plan_.shape.length % plan_.tile() != 0) out_.close();
    print_scans();
    print_meeting();
    open_turns();
    const bool guarded = open_group(place(), plan_.tile());
    out_.line(fmt::format("const {0} beforeGroup = ({0})({1});", type_,
                          join("beforeWarp", "beforeInWarp[turnIndex]")));
    print_results(fmt::format(
        "joinBoth(beforeGroup, valueGroup[turnIndex][{}])", element()));
    if (guarded) out_.close();
    out_.close();
  }

  void print_for_each(const std::string& statement) {
    if (plan_.width > 1) out_.line("#pragma unroll");
    out_.line(fmt::format("for (int k = 0; k < {}; ++k) {}", plan_.width, statement));
  }

  // Each group by its thread, then the groups' totals by the warp. beforeInWarp: all of the warp's
  // piece of the tile that comes before this thread's group.
  void print_scans() {
    out_.line(fmt::format("{0} warpTotal = {1}, beforeInWarp[{2}];", carry_, identity_of(scan_),
                          plan_.in_flight));
    open_turns();
    const bool back = plan_.shape.backwards;
    if (plan_.width > 1) {
      out_.line("#pragma unroll");
      out_.open(back ? fmt::format("for (int k = {}; k >= 0; --k)", plan_.width - 2)
                     : fmt::format("for (int k = 1; k < {}; ++k)", plan_.width));
      const std::string own = "valueGroup[turnIndex][k]";
      const std::string other = fmt::format("valueGroup[turnIndex][k {} 1]", back ? "+" : "-");
      out_.line(fmt::format("{} = joinBoth({}, {});", own, other, own));
      out_.close();
    }
    out_.line(fmt::format("const {} upToHere = ke_scan_warp(valueGroup[turnIndex][{}], joinBoth);",
                          type_, back ? 0 : plan_.width - 1));
    out_.line(fmt::format("{} beforeHere = ke_from_lane(upToHere, laneIndex - 1);", type_));
    out_.line(fmt::format("if (laneIndex == 0) beforeHere = {};", identity_of(scan_)));
    out_.line(fmt::format("beforeInWarp[turnIndex] = {};", join("warpTotal", "beforeHere")));
    out_.line(
        fmt::format("warpTotal = {};", join("warpTotal", "ke_from_lane(upToHere, 31)")));
    out_.close();
  }

  // beforeWarp: all of the row that comes before this warp's piece of the tile. Two places take
  // turns, so that one barrier a tile is enough.
  void print_meeting() {
    if (plan_.warps() == 1) {
      out_.line(fmt::format("const {} beforeWarp = carryValue;", carry_));
      out_.line(fmt::format("carryValue = {};", join("carryValue", "warpTotal")));
      return;
    }
    const int64_t warps = plan_.warps();
    out_.line("if (laneIndex == 0) totalsPlace[warpIndex] = warpTotal;");
    out_.line("__syncthreads();");
    out_.line(fmt::format("{} beforeWarp = carryValue;", carry_));
    out_.line("#pragma unroll");
    out_.open(fmt::format("for (int w = 0; w < {}; ++w)", warps));
    out_.line("if (w == warpIndex) beforeWarp = carryValue;");
    out_.line(fmt::format("carryValue = {};", join("carryValue", "totalsPlace[w]")));
    out_.close();
    out_.line(fmt::format("totalsPlace = ({0}*)ke_shared() + (totalsPlace == ({0}*)ke_shared() ? "
                          "{1} : 0);",
                          carry_, warps));
  }

  // --- Columns ----------------------------------------------------------------------------------
  void print_columns() {
    out_.line(fmt::format("const {0} rowIndex = ({0})blockIdx.x * {1} + ({0})threadIdx.x;",
                          row_type(), plan_.block));
    if (plan_.shape.rows % plan_.block != 0) {
      out_.line(fmt::format("if (rowIndex >= {}) return;", plan_.shape.rows));
    }
    print_coordinates(plan_.shape.row_axis);
    out_.line(fmt::format("{} carryValue = {};", carry_, identity_of(scan_)));
    const int64_t length = plan_.shape.length, turns = plan_.in_flight;
    const std::string_view type = length + turns <= INT32_MAX ? "int" : "int64_t";
    out_.open(fmt::format("for ({0} tileFirst = 0; tileFirst < {1}; tileFirst += {2})", type,
                          length, turns));
    out_.line(fmt::format("{} valueGroup[{}][1];",
                          target::compute_type(target::scan_dtype(scan_)), turns));
    for (const bool values : {true, false}) {
      open_turns();
      const bool guarded = open_group("tileFirst + turnIndex", turns);
      if (values) {
        print_values();
      } else {
        out_.line(fmt::format("carryValue = {};", join("carryValue", "valueGroup[turnIndex][0]")));
        print_results("carryValue");
      }
      if (guarded) out_.close();
      out_.close();
    }
    out_.close();
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  const ScanPlan& plan_;
  const FusedStage& scan_;
  std::string carry_, type_;  // C types: of what is carried, and of a block's values
  std::vector<AxisBinding> axes_;
  target::CodeWriter out_;
};

Result<KernelCode> print_scan(PrintContext& context, const Device& device) {
  const ScanPlan plan = scan_plan(context.program, context.kernel, device);
  if (plan.shape.rows == 0 || plan.shape.length == 0) {
    KernelCode code;
    code.schedule = "Nothing to compute.";
    return code;
  }
  PrintContext own{context.program, plan.shape.kernel, context.elsewhere};
  return ScanPrinter(own, plan).run();
}

}  // namespace

const SkeletonPrinter& scan_skeleton() {
  static constexpr SkeletonPrinter printer{scan_choices, scan_estimate, print_scan};
  return printer;
}

}  // namespace ke::cuda
