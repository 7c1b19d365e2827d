// SPDX-License-Identifier: Apache-2.0
//
// The scan skeleton: running sums, products and extremes along an axis, with what is computed from
// each of them on the way. Two layouts:
//
//   lanes along the row: a vector is scanned in log(lanes) steps and meets what is carried from the
//     vectors before it; a task is some rows;
//   lanes across rows: each lane scans a row of its own; a task is a tile of neighbouring rows,
//     whose carries are an array, so that memory is walked contiguously.
//
// Sums and products are carried in double, so rounding does not grow along the row.
#include <fmt/format.h>

#include <algorithm>

#include "target/scan_shape.hpp"
#include "target/x86/reduce_plan.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {
namespace {

using ir::DType;
using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;

struct ScanPlan {
  target::ScanShape shape;
  bool rows_in_lanes = false;
  int lanes = 1;
  int64_t rows_per_task = 1;
  int64_t tile = 1, tiles = 1;  // of the lane axis when rows_in_lanes
  int64_t tasks = 1;
  bool parallel = false, streaming = false;

  const FusedStage& scan() const { return shape.kernel.stages.front(); }
  int lane_axis() const { return rows_in_lanes ? shape.row_axis : shape.axis(); }
};

// Lanes of the scan itself: as many of its numbers as a vector holds.
int scan_lanes(const ScanPlan& plan, const MachineProfile& machine) {
  const DType dtype = plan.rows_in_lanes ? target::carry_dtype(plan.scan())
                                         : target::block_dtype(plan.scan());
  if (dtype == DType::boolean) return 1;
  return static_cast<int>(machine.vector_bytes / std::max<int64_t>(4, bytes_of(dtype)));
}

// The layout that memory suggests, and whether lanes across rows are possible.
ScanPlan suggested_scan(const Program& program, const FusedKernel& kernel,
                        const MachineProfile& machine, bool& either) {
  ScanPlan plan{target::scan_shape(program, kernel)};
  either = plan.shape.row_axis >= 0 && plan.shape.row_extent() >= machine.vector_bytes / 4;
  plan.rows_in_lanes = either && plan.shape.across;
  return plan;
}

// A scanned element takes some steps across lanes, every other one its own place.
Traffic scan_traffic(const Program& program, const FusedKernel& kernel) {
  Traffic traffic = traffic_of(program, kernel);
  for (const FusedStage& stage : kernel.stages) {
    const double points = static_cast<double>(product_of(axes_of(kernel, stage)));
    traffic.operations += (stage.scan ? 8 : 1) * points;
  }
  return traffic;
}

bool scan_can_stream(const Program& program, const ScanPlan& plan) {
  const FusedKernel& kernel = plan.shape.kernel;
  return std::all_of(kernel.stages.begin(), kernel.stages.end(), [&](const FusedStage& stage) {
    return is_internal(kernel, stage.output) ||
           stores_aligned(program, stage, plan.lane_axis(), plan.lanes);
  });
}

std::vector<ScheduleChoice> scan_choices(const Program& program, const FusedKernel& kernel,
                                         const MachineProfile& machine) {
  bool either = false;
  ScanPlan plan = suggested_scan(program, kernel, machine, either);
  if (plan.shape.rows == 0 || plan.shape.length == 0) return {};
  std::vector<ScheduleChoice> choices;
  if (either) {
    choices.push_back({"rows_in_lanes", {0, 1}, plan.rows_in_lanes ? 1 : 0});
    plan.rows_in_lanes = chosen(kernel, choices, "rows_in_lanes") != 0;
  }
  plan.lanes = scan_lanes(plan, machine);
  const Traffic work = scan_traffic(program, kernel);
  const bool parallel =
      machine.threads > 1 && work.read + work.written + work.operations > 1e5;
  choices.push_back({"parallel", {0, 1}, parallel ? 1 : 0});
  if (plan.rows_in_lanes) {
    const int64_t extent = plan.shape.row_extent();
    int64_t tile = 1024;
    while (tile > 64 && plan.shape.rows / tile < 4 * machine.threads) tile /= 2;
    choices.push_back(powers_choice("tile", 64, std::min<int64_t>(2 * extent, 4096), tile));
  } else {
    const int64_t rows = plan.shape.rows;
    const int64_t per_task = std::min(rows / (8 * machine.threads), 65536 / plan.shape.length);
    choices.push_back(powers_choice("rows_per_task", 1, std::min<int64_t>(rows, 1024),
                             std::max<int64_t>(per_task, 1)));
  }
  if (scan_can_stream(program, plan)) {
    choices.push_back({"streaming", {0, 1}, prefers_streaming(program, kernel, machine) ? 1 : 0});
  }
  return choices;
}

ScanPlan scan_plan(const Program& program, const FusedKernel& kernel,
                   const MachineProfile& machine) {
  bool either = false;
  ScanPlan plan = suggested_scan(program, kernel, machine, either);
  const std::vector<ScheduleChoice> choices = scan_choices(program, kernel, machine);
  const auto value = [&](std::string_view name, int64_t otherwise) {
    const auto named = [&](const ScheduleChoice& choice) { return choice.name == name; };
    const bool has = std::any_of(choices.begin(), choices.end(), named);
    return has ? chosen(kernel, choices, name) : otherwise;
  };
  plan.rows_in_lanes = value("rows_in_lanes", 0) != 0;
  plan.lanes = scan_lanes(plan, machine);
  plan.streaming = value("streaming", 0) != 0;
  if (plan.rows_in_lanes) {
    plan.tile = value("tile", 64);
    plan.tiles = (plan.shape.row_extent() + plan.tile - 1) / plan.tile;
    plan.tasks = plan.shape.rows / std::max<int64_t>(plan.shape.row_extent(), 1) * plan.tiles;
  } else {
    plan.rows_per_task = value("rows_per_task", 1);
    plan.tasks = (plan.shape.rows + plan.rows_per_task - 1) / plan.rows_per_task;
  }
  plan.parallel = value("parallel", 0) != 0 && plan.tasks > 1;
  return plan;
}

double scan_estimate(const Program& program, const FusedKernel& kernel,
                     const MachineProfile& machine) {
  const ScanPlan plan = scan_plan(program, kernel, machine);
  const Traffic work = scan_traffic(program, kernel);
  const double moved = work.read + work.written * (plan.streaming ? 1 : 2);
  const double memory = move_ns(moved, work.read + work.written, plan.parallel, machine);
  const double arithmetic = compute_ns(work.operations, plan.lanes > 1, plan.parallel, machine);
  return std::max(memory, arithmetic) + (plan.parallel ? kForkJoinNs : 100) +
         static_cast<double>(plan.tasks) * 50;
}

// --- Printing -----------------------------------------------------------------------------------

class ScanPrinter {
 public:
  ScanPrinter(PrintContext& context, const ScanPlan& plan)
      : context_(context),
        kernel_(context.kernel),
        plan_(plan),
        scan_(plan.scan()),
        carry_(target::carry_dtype(scan_)),
        block_(target::block_dtype(scan_)),
        variables_(axis_variables(context, axes_of(kernel_, scan_))) {}

  KernelCode run() {
    const ArgumentBlock block = argument_block(context_, false);
    out_.open(
        fmt::format("static void {}([[maybe_unused]] int64_t task, void* argument)", kernel_.name));
    out_.lines(block.unpack);
    plan_.rows_in_lanes ? print_across_rows() : print_along_rows();
    if (plan_.streaming) out_.line("__builtin_ia32_sfence();");
    out_.close();
    KernelCode code;
    code.functions = block.declaration + out_.take();
    code.launch = declare_arguments(block) + launch_tasks(context_, block, kernel_.name,
                                                          std::to_string(plan_.tasks),
                                                          plan_.parallel);
    code.helpers = context_.helpers;
    code.schedule = words();
    return code;
  }

 private:
  std::string words() const {
    const std::string& axis = scan_.inner.front().name;
    std::string text =
        plan_.rows_in_lanes
            ? fmt::format("Schedule: each of {} lanes scans a row of its own along {}; {} tasks of "
                          "{} neighbouring rows",
                          plan_.lanes, axis, plan_.tasks, plan_.tile)
            : fmt::format("Schedule: vectors of {} are scanned along {} and meet what is carried "
                          "from before; {} tasks of {} rows",
                          plan_.lanes, axis, plan_.tasks, plan_.rows_per_task);
    if (plan_.shape.backwards) text += ", each from its end";
    text += plan_.parallel ? " over the threads." : " on one thread.";
    return text + (plan_.streaming ? " Stores pass the caches by." : "");
  }

  std::string_view carry_type() const { return target::compute_type(carry_); }
  const std::string& variable() const { return variables_.back(); }
  bool is_vector(int width) const { return width > 1; }

  std::vector<AxisBinding> bindings(int width) const {
    std::vector<AxisBinding> result;
    for (size_t k = 0; k < variables_.size(); ++k) {
      result.push_back({variables_[k], width > 1 && static_cast<int>(k) == plan_.lane_axis()});
    }
    return result;
  }

  // The coordinates of all rows but `skipped` from a flat index.
  void print_row_axes(std::string_view flat, int skipped) {
    int64_t below = 1;
    for (size_t k = 0; k < kernel_.rows.size(); ++k) {
      if (static_cast<int>(k) != skipped) below *= kernel_.rows[k].extent;
    }
    bool outermost = true;
    for (size_t k = 0; k < kernel_.rows.size(); ++k) {
      if (static_cast<int>(k) == skipped) continue;
      below /= kernel_.rows[k].extent;
      std::string text = below == 1 ? std::string(flat) : fmt::format("{} / {}", flat, below);
      if (!outermost) text += fmt::format(" % {}", kernel_.rows[k].extent);
      outermost = false;
      out_.line(fmt::format("[[maybe_unused]] const int64_t {} = {};", variables_[k], text));
    }
  }

  // --- Lanes along the row ----------------------------------------------------------------------
  void print_along_rows() {
    const int64_t length = plan_.shape.length;
    const int lanes = length >= plan_.lanes ? plan_.lanes : 1;
    out_.line(fmt::format("constexpr int64_t kRows = {}, kRowsPerTask = {}, kLength = {};",
                          plan_.shape.rows, plan_.rows_per_task, length));
    out_.line("const int64_t begin = task * kRowsPerTask;");
    out_.line("const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;");
    out_.open("for (int64_t row = begin; row < end; ++row)");
    print_row_axes("row", -1);
    out_.line(fmt::format("{} carry = {};", carry_type(), identity_of(scan_.reduce, carry_)));
    out_.line(fmt::format("int64_t {} = {};", variable(), plan_.shape.backwards ? "kLength" : "0"));
    if (lanes > 1) print_loop(lanes);
    if (length % lanes != 0 || lanes == 1) print_loop(1);
    out_.close();
  }

  void print_loop(int width) {
    Step step(*this, width);
    const std::string here = context_.fresh("here_");
    step.end(here, block_of(width));
    out_.lines(step.invariant());
    const std::string& i = variable();
    if (plan_.shape.backwards) {
      out_.open(fmt::format("while ({} >= {})", i, width));
      out_.line(fmt::format("{} -= {};", i, width));
    } else {
      out_.open(fmt::format("for (; {0} + {1} <= kLength; {0} += {1})", i, width));
    }
    out_.lines(step.values());
    print_meeting(width, step.value(), here);
    out_.lines(step.results());
    out_.close();
  }

  // A single element is only ever carried.
  DType block_of(int width) const { return width > 1 ? block_ : carry_; }

  // `here`: the scan up to this element or vector.
  void print_meeting(int width, const Value& value, const std::string& here) {
    if (width == 1) {
      out_.line(fmt::format("carry = {};", combined(context_, scan_, 1, "carry", value.text)));
      out_.line(fmt::format("const {} {} = carry;", carry_type(), here));
      return;
    }
    const std::string type = vector_type(context_, block_, width);
    const std::string way = plan_.shape.backwards ? "suffix" : "prefix";
    context_.helpers.insert(fmt::format("{}_{}:{}", way, enum_name(scan_.reduce), type));
    const std::string own = context_.fresh(way + "_");
    out_.line(fmt::format("const {} {} = {}_{}_of({});", type, own, way, enum_name(scan_.reduce),
                          value.text));
    const Value before = cast_value(context_, {"carry", carry_, false}, block_, 1);
    const std::string all = splat_value(context_, before, width).text;
    out_.line(
        fmt::format("const {} {} = {};", type, here, combined(context_, scan_, width, own, all)));
    const std::string last = fmt::format("{}[{}]", own, plan_.shape.backwards ? 0 : width - 1);
    const Value total = cast_value(context_, {last, block_, false}, carry_, 1);
    out_.line(fmt::format("carry = {};", combined(context_, scan_, 1, "carry", total.text)));
  }

  // --- Lanes across rows ------------------------------------------------------------------------
  void print_across_rows() {
    const int64_t extent = plan_.shape.row_extent(), tile = plan_.tile;
    const std::string& j = variables_[static_cast<size_t>(plan_.shape.row_axis)];
    out_.line(fmt::format("constexpr int64_t kTile = {}, kTiles = {}, kExtent = {}, kLength = {};",
                          tile, plan_.tiles, extent, plan_.shape.length));
    out_.line("[[maybe_unused]] const int64_t outer = task / kTiles;");
    out_.line("const int64_t first = task % kTiles * kTile;");
    out_.line(extent % tile == 0
                  ? "const int64_t last = first + kTile;"
                  : "const int64_t last = first + kTile < kExtent ? first + kTile : kExtent;");
    print_row_axes("outer", plan_.shape.row_axis);
    out_.line(fmt::format("alignas(64) {} carry[kTile];", carry_type()));
    out_.line(fmt::format("for (int64_t at = 0; at < kTile; ++at) carry[at] = {};",
                          identity_of(scan_.reduce, carry_)));
    out_.open(plan_.shape.backwards
                  ? fmt::format("for (int64_t {0} = kLength - 1; {0} >= 0; --{0})", variable())
                  : fmt::format("for (int64_t {0} = 0; {0} < kLength; ++{0})", variable()));
    const int lanes = extent >= plan_.lanes ? plan_.lanes : 1;
    out_.line(fmt::format("int64_t {} = first;", j));
    if (lanes > 1) print_row_loop(lanes, j);
    if (lanes == 1 || extent % lanes != 0 || tile % lanes != 0) print_row_loop(1, j);
    out_.close();
  }

  void print_row_loop(int width, const std::string& j) {
    Step step(*this, width);
    const std::string here = context_.fresh("here_");
    const std::string value = step.carried();
    step.end(here, carry_);
    out_.lines(step.invariant());
    out_.open(fmt::format("for (; {0} + {1} <= last; {0} += {1})", j, width));
    out_.lines(step.values());
    if (width == 1) {
      const std::string place = fmt::format("carry[{} - first]", j);
      out_.line(fmt::format("{0} = {1};", place, combined(context_, scan_, 1, place, value)));
      out_.line(fmt::format("const {} {} = {};", carry_type(), here, place));
    } else {
      const std::string type = memory_type(carry_, width);
      context_.helpers.insert("load:" + type);
      context_.helpers.insert("store:" + type);
      const std::string before = fmt::format("load_{}(carry + ({} - first))", type, j);
      out_.line(fmt::format("const {} {} = {};", type, here,
                            combined(context_, scan_, width, before, value)));
      out_.line(fmt::format("store_{}(carry + ({} - first), {});", type, j, here));
    }
    out_.lines(step.results());
    out_.close();
  }

  // What comes before the scan of one element or vector, and what comes after.
  class Step {
   public:
    Step(ScanPrinter& owner, int width)
        : owner_(owner),
          width_(width),
          before_(owner.context_, width, owner.bindings(width)),
          after_(owner.context_, width, owner.bindings(width)) {
      const FusedStage& scan = owner_.scan_;
      value_ = before_.print_cast(before_.print(scan.body), target::scan_dtype(scan));
      value_ = before_.print_cast(value_, owner_.block_of(width));
      if (width > 1) value_ = before_.as_vector(value_);
    }

    const Value& value() const { return value_; }
    // The value as the carries' type.
    std::string carried() { return before_.print_cast(value_, owner_.carry_).text; }

    // Prints the results from the scan's value, a variable of that type.
    void end(const std::string& here, DType dtype) {
      Value value{here, dtype, width_ > 1};
      for (const FusedStage& stage : owner_.kernel_.stages) {
        if (!stage.scan) value = after_.print(stage.body);
        value = after_.print_cast(value, owner_.context_.tensor(stage.output).dtype);
        if (!is_internal(owner_.kernel_, stage.output)) {
          const bool streaming = owner_.plan_.streaming && width_ > 1;
          after_.store(stage.output, stage.store, value,
                       streaming ? StoreKind::streaming : StoreKind::plain);
        }
        after_.hold(stage.output, {value.text, value.vector});
      }
    }

    std::string invariant() const { return before_.invariant() + after_.invariant(); }
    const std::string& values() const { return before_.statements(); }
    const std::string& results() const { return after_.statements(); }

   private:
    ScanPrinter& owner_;
    int width_;
    VectorPrinter before_, after_;
    Value value_;
  };

  PrintContext& context_;
  const FusedKernel& kernel_;
  const ScanPlan& plan_;
  const FusedStage& scan_;
  DType carry_, block_;
  std::vector<std::string> variables_;
  target::CodeWriter out_;
};

Result<KernelCode> print_scan(PrintContext& context) {
  const ScanPlan plan = scan_plan(context.program, context.kernel, context.machine);
  if (plan.shape.rows == 0 || plan.shape.length == 0) {
    KernelCode code;
    code.schedule = "Nothing to compute.";
    return code;
  }
  PrintContext own{context.program, context.machine, plan.shape.kernel};
  return ScanPrinter(own, plan).run();
}

}  // namespace

const SkeletonPrinter& scan_skeleton() {
  static constexpr SkeletonPrinter printer{scan_choices, scan_estimate, print_scan};
  return printer;
}

}  // namespace ke::x86
