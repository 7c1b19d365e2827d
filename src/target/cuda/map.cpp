// SPDX-License-Identifier: Apache-2.0
//
// The map skeleton: every stage is one scalar expression for each point of the rows. A thread takes
// `width` neighbours along the axis that most accesses walk contiguously, `items` times; the other
// axes and the groups of neighbours are one flat index. What all items load is loaded first.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "target/access.hpp"
#include "target/cuda/cost.hpp"
#include "target/cuda/elements.hpp"

namespace ke::cuda {
namespace {

using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;

// The shape of the work, from the kernel alone.
struct MapShape {
  int lane_axis = -1;  // -1: no axes at all
  int64_t outer = 1;   // product of the other extents
  int64_t extent = 1;  // of the lane axis
  int64_t widest = 1;
  int64_t total() const { return outer * extent; }
};

MapShape shape_of(const Program& program, const FusedKernel& kernel) {
  MapShape shape;
  const int count = static_cast<int>(kernel.rows.size());
  if (count == 0) return shape;
  std::vector<double> scores(static_cast<size_t>(count));
  for (const FusedStage& stage : kernel.stages) {
    const std::vector<double> more = target::lane_scores(program, stage, count);
    for (size_t axis = 0; axis < scores.size(); ++axis) scores[axis] += more[axis];
  }
  for (int axis = 0; axis < count; ++axis) {
    const bool better = shape.lane_axis < 0 || scores[static_cast<size_t>(axis)] >=
                                                   scores[static_cast<size_t>(shape.lane_axis)];
    if (better) shape.lane_axis = axis;
  }
  shape.extent = kernel.rows[static_cast<size_t>(shape.lane_axis)].extent;
  shape.outer = shape.extent == 0 ? 0 : target::product_of(kernel.rows) / shape.extent;
  shape.widest = widest_group(program, kernel.stages, shape.lane_axis);
  // A rest is handled element by element, once; with several rows it would also unalign the next.
  while (shape.widest > 1 && shape.outer > 1 && shape.extent % shape.widest != 0) {
    shape.widest /= 2;
  }
  while (shape.widest > 1 && shape.widest > shape.extent) shape.widest /= 2;
  return shape;
}

int64_t largest_element(const Program& program, const FusedKernel& kernel) {
  int64_t bytes = 1;
  for (const ir::TensorId id : kernel.reads) {
    bytes = std::max(bytes, bytes_of(program.tensor(id).dtype));
  }
  for (const ir::TensorId id : kernel.writes) {
    bytes = std::max(bytes, bytes_of(program.tensor(id).dtype));
  }
  return bytes;
}

std::vector<ScheduleChoice> map_choices(const Program& program, const FusedKernel& kernel,
                                        const Device& device) {
  const MapShape shape = shape_of(program, kernel);
  if (shape.total() == 0 || shape.lane_axis < 0) return {};
  // 16 bytes of the largest type a thread, as long as every multiprocessor gets work: more a thread
  // is slower, since fewer blocks of it take turns at memory.
  const int64_t most = 16 / largest_element(program, kernel);
  int64_t wanted = std::min(shape.widest, most);
  while (wanted > 1 && shape.total() / wanted < device.threads() / 4) wanted /= 2;
  const int64_t per_thread = shape.total() / wanted / (2 * device.threads());
  const int64_t block = shape.total() / wanted >= 256 * device.multiprocessors ? 256 : 128;
  return {powers_choice("width", 1, shape.widest, wanted),
          powers_choice("items", 1, 8,
                        std::clamp<int64_t>(per_thread, 1, std::max<int64_t>(most / wanted, 1))),
          powers_choice("block", 64, 1024, block)};
}

double map_estimate(const Program& program, const FusedKernel& kernel, const Device& device) {
  const MapShape shape = shape_of(program, kernel);
  const std::vector<ScheduleChoice> choices = map_choices(program, kernel, device);
  if (choices.empty()) return device.launch_ns;
  const KernelWork work = work_of(program, kernel);
  const int64_t width = target::chosen(kernel, choices, "width");
  const int64_t items = target::chosen(kernel, choices, "items");
  // Few bytes a thread keep too little in flight for memory to stay busy; many make few blocks.
  const double bytes = static_cast<double>(width * items * largest_element(program, kernel));
  const double share = bytes <= 16 ? 0.7 + 0.3 * bytes / 16 : 0.97;
  const double threads = static_cast<double>(shape.total()) / static_cast<double>(width * items);
  return kernel_ns(work, threads, share, device);
}

// --- Printing -----------------------------------------------------------------------------------

class MapPrinter {
 public:
  MapPrinter(PrintContext& context, const MapShape& shape,
             const std::vector<ScheduleChoice>& schedule)
      : context_(context), kernel_(context.kernel), shape_(shape) {
    const std::vector<std::string> names = axis_variables(context, kernel_.rows);
    for (size_t k = 0; k < names.size(); ++k) {
      axes_.push_back({names[k], kernel_.rows[k].extent});
    }
    if (schedule.empty()) return;
    width_ = target::chosen(kernel_, schedule, "width");
    per_thread_ = target::chosen(kernel_, schedule, "items");
    block_ = target::chosen(kernel_, schedule, "block");
    groups_ = (shape.extent + width_ - 1) / width_;
    items_ = shape.outer * groups_;
  }

  Result<KernelCode> run() {
    KernelCode code;
    if (shape_.total() == 0) {
      code.schedule = "Nothing to compute.";
      return code;
    }
    TRY(check_points());
    target::CodeWriter out;
    out.open(function_head(context_, kernel_.name, block_, false));
    print_items(out);
    out.close();
    code.functions = out.take();
    const int64_t per_block = block_ * per_thread_;
    code.launches.push_back({kernel_.name, (items_ + per_block - 1) / per_block, 1, block_, 0});
    code.schedule = words();
    return code;
  }

 private:
  std::string words() const {
    if (shape_.lane_axis < 0) return "One element.";
    return fmt::format("Schedule: {} of {} a thread, {} times; blocks of {} threads.", width_,
                       kernel_.rows[static_cast<size_t>(shape_.lane_axis)].name, per_thread_,
                       block_);
  }

  // A later stage may read what an earlier one wrote at the same point only.
  Result<void> check_points() const {
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      for (size_t later = s + 1; later < kernel_.stages.size(); ++later) {
        if (reads_elsewhere(kernel_.stages[later], kernel_.stages[s])) {
          return Error{Errc::unavailable,
                       fmt::format("kernel {} reads {} at another point than it was written at",
                                   kernel_.name, context_.tensor(kernel_.stages[s].output).name)};
        }
      }
    }
    return {};
  }

  void print_items(target::CodeWriter& out) {
    const std::string_view type = items_ + block_ * per_thread_ <= INT32_MAX ? "int" : "int64_t";
    if (shape_.lane_axis < 0) {
      out.line("if (threadIdx.x > 0) return;");
      return print_group(out, 1);
    }
    const std::string base =
        fmt::format("({})blockIdx.x * {} + ({})threadIdx.x", type, block_ * per_thread_, type);
    if (per_thread_ == 1) {
      out.line(fmt::format("const {} itemIndex = {};", type, base));
      if (!is_whole()) out.line(fmt::format("if (itemIndex >= {}) return;", items_));
      print_coordinates(out);
      return print_item(out);
    }
    out.line(fmt::format("const {} firstItem = {};", type, base));
    find_early_loads();
    if (!early_.empty()) {
      for (const LoadArray& array : early_) declare_array(context_, out, array, per_thread_);
      open_turns(out, type);
      print_coordinates(out);
      for (const LoadArray& array : early_) {
        fill_array(context_, out, array, axes_, shape_.lane_axis);
      }
      out.close();
    }
    open_turns(out, type);
    print_coordinates(out);
    print_item(out);
    out.close();
  }

  bool is_whole() const { return items_ % (block_ * per_thread_) == 0; }

  void open_turns(target::CodeWriter& out, std::string_view type) const {
    out.line("#pragma unroll");
    out.open(fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)", per_thread_));
    out.line(fmt::format("const {} itemIndex = firstItem + turnIndex * {};", type, block_));
    if (!is_whole()) out.line(fmt::format("if (itemIndex >= {}) break;", items_));
  }

  // Loads that every item makes, as many as half of the registers hold.
  void find_early_loads() {
    if (shape_.extent % width_ != 0) return;
    int64_t words = std::min<int64_t>(32768 / block_, 64);
    for (const FusedStage& stage : kernel_.stages) {
      for (const ir::ExprPtr& load : certain_loads(stage.body)) {
        const auto known = [&](const LoadArray& array) { return same(*array.load, *load); };
        if (std::any_of(early_.begin(), early_.end(), known)) continue;
        const int64_t own = per_thread_ * words_of(context_, *load, width_);
        if (!is_walked(*load) || own > words) continue;
        if (!is_early(context_, *load, shape_.lane_axis, width_)) continue;
        words -= own;
        const std::string& name = context_.tensor(load->tensor).name;
        early_.push_back({load, context_.fresh(name + "Early"), width_});
      }
    }
  }

  bool is_walked(const ir::Expr& load) const {
    bool walked = false;
    for (size_t k = 0; k < axes_.size(); ++k) {
      walked = walked || target::depends_on_axis(load, static_cast<int>(k));
    }
    return walked;
  }

  // The coordinates of itemIndex: of the first of its neighbours.
  void print_coordinates(target::CodeWriter& out) {
    const auto lane = static_cast<size_t>(shape_.lane_axis);
    int64_t below = items_;
    bool outermost = true;
    const auto coordinate = [&](int64_t extent) {
      below /= std::max<int64_t>(extent, 1);
      std::string text = below == 1 ? "itemIndex" : fmt::format("itemIndex / {}", below);
      if (!outermost) text += fmt::format(" % {}", extent);
      outermost = false;
      return text;
    };
    for (size_t k = 0; k < axes_.size(); ++k) {
      if (k == lane) continue;
      out.line(fmt::format("const {} {} = {};", index_type(axes_[k]), axes_[k].variable,
                           coordinate(axes_[k].extent)));
    }
    const std::string first = ElementLoop::first_variable(axes_[lane], width_);
    const std::string group = coordinate(groups_);
    out.line(fmt::format("const {} {} = {};", index_type(axes_[lane]), first,
                         width_ == 1            ? group
                         : group == "itemIndex" ? fmt::format("itemIndex * {}", width_)
                                                : fmt::format("({}) * {}", group, width_)));
  }

  void print_item(target::CodeWriter& out) {
    if (shape_.extent % width_ == 0) return print_group(out, width_);
    const AxisBinding& lane = axes_[static_cast<size_t>(shape_.lane_axis)];
    const std::string first = ElementLoop::first_variable(lane, width_);
    out.open(fmt::format("if ({} + {} <= {})", first, width_, shape_.extent));
    print_group(out, width_);
    out.close();
    out.open(fmt::format("else for ({0} {1} = {2}; {1} < {3}; ++{1})", index_type(lane),
                         lane.variable, first, shape_.extent));
    print_group(out, 1);
    out.close();
  }

  void print_group(target::CodeWriter& out, int64_t width) {
    ElementLoop loop(context_, out, axes_, shape_.lane_axis, width);
    for (const LoadArray& array : early_) loop.hold(array);
    for (const FusedStage& stage : kernel_.stages) {
      loop.prepare(stage.body);  // loads of what a stage before wrote are never from memory
      loop.hold(stage.output, "");
    }
    for (const FusedStage& stage : kernel_.stages) {
      if (!is_internal(kernel_, stage.output)) loop.prepare_store(stage.output, stage.store);
    }
    loop.open();
    for (const FusedStage& stage : kernel_.stages) {
      ScalarPrinter& element = loop.element();
      const ir::DType dtype = context_.tensor(stage.output).dtype;
      const Value value = element.print_cast(element.print(stage.body), dtype);
      if (!is_internal(kernel_, stage.output)) loop.store(stage.output, stage.store, value);
      element.hold(stage.output, value.text);
    }
    loop.close();
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  MapShape shape_;
  std::vector<AxisBinding> axes_;
  std::vector<LoadArray> early_;
  int64_t width_ = 1, per_thread_ = 1, block_ = 32, groups_ = 1, items_ = 1;
};

Result<KernelCode> print_map(PrintContext& context, const Device& device) {
  for (const FusedStage& stage : context.kernel.stages) {
    if (stage.reduce == ir::ReduceOp::none && stage.inner.empty()) continue;
    return Error{Errc::unavailable,
                 fmt::format("kernel {} of skeleton map has a stage that is no plain map",
                             context.kernel.name)};
  }
  const MapShape shape = shape_of(context.program, context.kernel);
  const auto schedule = map_choices(context.program, context.kernel, device);
  return MapPrinter(context, shape, schedule).run();
}

}  // namespace

const SkeletonPrinter& map_skeleton() {
  static constexpr SkeletonPrinter printer{map_choices, map_estimate, print_map};
  return printer;
}

}  // namespace ke::cuda
