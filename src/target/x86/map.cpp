// SPDX-License-Identifier: Apache-2.0
//
// The map skeleton: every stage is one scalar expression for each point of the rows. The axis that
// most accesses walk contiguously becomes the vector lanes; the others are flattened into `outer`.
// A task is a chunk of the lane axis, or several whole outer rows where these are short.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/x86/access.hpp"
#include "target/x86/vector_ops.hpp"
#include "target/x86/vector_printer.hpp"

namespace ke::x86 {
namespace {

using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;

constexpr int64_t kSmallWork = 1 << 14;  // weighted bytes below which one thread is enough

// The shape of the loops, from the kernel alone.
struct Loops {
  int lane_axis = -1;  // -1: no axes at all
  int lanes = 1;
  int64_t outer = 1;   // product of the other extents
  int64_t extent = 1;  // of the lane axis
  int64_t total() const { return outer * extent; }
};

Loops loops_of(const Program& program, const FusedKernel& kernel, const MachineProfile& machine) {
  Loops loops;
  const int count = static_cast<int>(kernel.rows.size());
  if (count == 0) return loops;
  std::vector<double> scores(static_cast<size_t>(count));
  for (const FusedStage& stage : kernel.stages) {
    const std::vector<double> more = lane_scores(program, stage, count);
    for (int axis = 0; axis < count; ++axis) {
      scores[static_cast<size_t>(axis)] += more[static_cast<size_t>(axis)];
    }
  }
  const int lanes = natural_lanes(program, kernel, machine);
  for (int axis = 0; axis < count; ++axis) {  // a short axis leaves lanes empty
    const bool short_axis = kernel.rows[static_cast<size_t>(axis)].extent < lanes;
    scores[static_cast<size_t>(axis)] -= short_axis ? 100 : 0;
    const bool better = loops.lane_axis < 0 || scores[static_cast<size_t>(axis)] >=
                                                   scores[static_cast<size_t>(loops.lane_axis)];
    if (better) loops.lane_axis = axis;
  }
  loops.lanes = lanes;
  loops.extent = kernel.rows[static_cast<size_t>(loops.lane_axis)].extent;
  loops.outer = loops.extent == 0 ? 0 : product_of(kernel.rows) / loops.extent;
  return loops;
}

bool can_stream(const Program& program, const FusedKernel& kernel, const Loops& loops) {
  if (loops.lane_axis < 0) return false;
  for (const FusedStage& stage : kernel.stages) {
    if (!stores_aligned(program, stage, loops.lane_axis, loops.lanes)) return false;
  }
  return true;
}

bool worth_threads(const Traffic& traffic, const MachineProfile& machine) {
  const double weight = traffic.read + traffic.written + traffic.operations;
  return machine.threads > 1 && weight > static_cast<double>(kSmallWork) * 8;
}

int64_t power_of_two_at_most(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

std::vector<ScheduleChoice> map_choices(const Program& program, const FusedKernel& kernel,
                                        const MachineProfile& machine) {
  const Loops loops = loops_of(program, kernel, machine);
  if (loops.total() == 0 || loops.lane_axis < 0) return {};
  const Traffic traffic = traffic_of(program, kernel);
  std::vector<ScheduleChoice> choices;
  choices.push_back({"unroll",
                     {1, 2, 4, 8},
                     traffic.operations > 20.0 * static_cast<double>(loops.total()) ? 1 : 4});
  const bool parallel = worth_threads(traffic, machine);
  choices.push_back({"parallel", {0, 1}, parallel ? 1 : 0});
  ScheduleChoice chunk{"chunk", {}, 0};
  const int64_t largest = std::max<int64_t>(loops.total(), 64);
  for (int64_t size = 256; size < largest * 2 && size <= (1 << 20); size *= 4) {
    chunk.values.push_back(size);
  }
  if (chunk.values.empty()) chunk.values.push_back(256);
  const int64_t wanted = power_of_two_at_most(
      std::clamp<int64_t>(loops.total() / (4 * machine.threads), 256, 1 << 16));
  chunk.preferred = chunk.values.front();
  for (const int64_t value : chunk.values)
    chunk.preferred = value <= wanted ? value : chunk.preferred;
  choices.push_back(chunk);
  if (can_stream(program, kernel, loops)) {
    choices.push_back({"streaming", {0, 1}, prefers_streaming(program, kernel, machine) ? 1 : 0});
  }
  return choices;
}

double map_estimate(const Program& program, const FusedKernel& kernel,
                    const MachineProfile& machine) {
  const Loops loops = loops_of(program, kernel, machine);
  const std::vector<ScheduleChoice> choices = map_choices(program, kernel, machine);
  if (choices.empty()) return 100;
  const Traffic traffic = traffic_of(program, kernel);
  const bool parallel = chosen(kernel, choices, "parallel") != 0;
  const bool streaming =
      choices.back().name == "streaming" && chosen(kernel, choices, "streaming") != 0;
  const double moved = traffic.read + traffic.written * (streaming ? 1 : 2);
  const double chunk = static_cast<double>(chosen(kernel, choices, "chunk"));
  const double tasks = static_cast<double>(loops.total()) / chunk + 1;
  const double memory = move_ns(moved, traffic.read + traffic.written, parallel, machine);
  const double arithmetic =
      compute_ns(traffic.operations, loops.extent >= loops.lanes, parallel, machine);
  return std::max(memory, arithmetic) + (parallel ? kForkJoinNs : 100) + tasks * 50;
}

// --- Printing -----------------------------------------------------------------------------------

class MapPrinter {
 public:
  MapPrinter(PrintContext& context, const Loops& loops, const std::vector<ScheduleChoice>& schedule)
      : context_(context), kernel_(context.kernel), loops_(loops) {
    variables_ = axis_variables(context, kernel_.rows);
    if (schedule.empty()) return;
    unroll_ = chosen(kernel_, schedule, "unroll");
    parallel_ = chosen(kernel_, schedule, "parallel") != 0;
    const int64_t chunk = chosen(kernel_, schedule, "chunk");
    streaming_ = schedule.back().name == "streaming" && chosen(kernel_, schedule, "streaming") != 0;
    rows_per_task_ = std::clamp<int64_t>(chunk / loops.extent, 1, loops.outer);
    lane_chunk_ = std::min(chunk, loops.extent);
    blocks_ = (loops.extent + lane_chunk_ - 1) / lane_chunk_;
    if (blocks_ > 1) rows_per_task_ = 1;
    tasks_ = (loops.outer + rows_per_task_ - 1) / rows_per_task_ * blocks_;
    parallel_ = parallel_ && tasks_ > 1;
  }

  Result<KernelCode> run() {
    KernelCode code;
    if (loops_.total() == 0) {
      code.schedule = "Nothing to compute.";
      return code;
    }
    const ArgumentBlock block = argument_block(context_, false);
    target::CodeWriter out;
    out.open(
        fmt::format("static void {}([[maybe_unused]] int64_t task, void* argument)", kernel_.name));
    out.lines(block.unpack);
    if (loops_.lane_axis < 0) {
      TRY(print_element(out));
    } else {
      TRY(print_outer(out));
    }
    if (streaming_) out.line("__builtin_ia32_sfence();");
    out.close();
    code.functions = block.declaration + out.take();
    code.launch = declare_arguments(block) +
                  launch_tasks(context_, block, kernel_.name, std::to_string(tasks_), parallel_);
    code.schedule = words();
    code.helpers = context_.helpers;
    return code;
  }

 private:
  std::string words() const {
    if (loops_.lane_axis < 0) return "One element.";
    std::string text =
        fmt::format("Schedule: vectors of {} along {}, unrolled {}x; {} tasks of {}", loops_.lanes,
                    kernel_.rows[static_cast<size_t>(loops_.lane_axis)].name, unroll_, tasks_,
                    blocks_ > 1 || loops_.outer == 1
                        ? fmt::format("{} elements", lane_chunk_)
                        : fmt::format("{} rows of {}", rows_per_task_, loops_.extent));
    text += parallel_ ? " over the threads" : " on one thread";
    return text + (streaming_ ? "; stores pass the caches by." : ".");
  }

  std::vector<AxisBinding> bindings(bool vector) const {
    std::vector<AxisBinding> result;
    for (size_t k = 0; k < variables_.size(); ++k) {
      result.push_back({variables_[k], vector && static_cast<int>(k) == loops_.lane_axis});
    }
    return result;
  }

  // The body of every stage at one point or vector.
  Result<void> print_stages(VectorPrinter& printer) {
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const FusedStage& stage = kernel_.stages[s];
      const ir::DType dtype = context_.tensor(stage.output).dtype;
      const Value value = printer.print_cast(printer.print(stage.body), dtype);
      const bool internal = std::find(kernel_.internals.begin(), kernel_.internals.end(),
                                      stage.output) != kernel_.internals.end();
      if (!internal) {
        printer.store(stage.output, stage.store, value,
                      streaming_ ? StoreKind::streaming : StoreKind::plain);
      }
      for (size_t later = s + 1; later < kernel_.stages.size(); ++later) {
        TRY(check_same_point(stage, kernel_.stages[later]));
      }
      printer.hold(stage.output, {value.text, value.vector});
    }
    return {};
  }

  // A later stage may read what an earlier one wrote at the same point only.
  Result<void> check_same_point(const FusedStage& stage, const FusedStage& later) const {
    bool same_point = true;
    walk(later.body, [&](const ir::Expr& expr) {
      if (expr.kind != ir::Expr::Kind::load || expr.tensor != stage.output) return;
      for (size_t d = 0; d < stage.store.size(); ++d) {
        same_point = same_point && same(*expr.operands[d], *stage.store[d]);
      }
    });
    if (same_point) return {};
    return Error{Errc::unavailable,
                 fmt::format("kernel {} reads {} at another point than it was written at",
                             kernel_.name, context_.tensor(stage.output).name)};
  }

  Result<void> print_element(target::CodeWriter& out) {
    VectorPrinter printer(context_, 1, {});
    TRY(print_stages(printer));
    out.lines(printer.statements());
    return {};
  }

  Result<void> print_outer(target::CodeWriter& out) {
    if (loops_.outer == 1) {
      for (size_t k = 0; k < variables_.size(); ++k) {
        if (static_cast<int>(k) == loops_.lane_axis) continue;
        out.line(fmt::format("constexpr int64_t {} = 0;", variables_[k]));
      }
      print_chunk(out, "task");
      return print_lanes(out);
    }
    if (blocks_ > 1) {
      out.line(fmt::format("const int64_t outer = task / {0}, part = task % {0};", blocks_));
      print_axes(out);
      print_chunk(out, "part");
      return print_lanes(out);
    }
    out.line(fmt::format("const int64_t begin = task * {};", rows_per_task_));
    out.line(fmt::format("const int64_t end = begin + {0} < {1} ? begin + {0} : {1};",
                         rows_per_task_, loops_.outer));
    out.open("for (int64_t outer = begin; outer < end; ++outer)");
    print_axes(out);
    out.line(fmt::format("constexpr int64_t first = 0, last = {};", loops_.extent));
    TRY(print_lanes(out));
    out.close();
    return {};
  }

  void print_chunk(target::CodeWriter& out, std::string_view index) const {
    if (blocks_ == 1) {
      out.line(fmt::format("constexpr int64_t first = 0, last = {};", loops_.extent));
      return;
    }
    out.line(
        fmt::format("constexpr int64_t kChunk = {}, kExtent = {};", lane_chunk_, loops_.extent));
    out.line(fmt::format("const int64_t first = {} * kChunk;", index));
    if (loops_.extent % lane_chunk_ == 0) {
      out.line("const int64_t last = first + kChunk;");
    } else {
      out.line("const int64_t last = first + kChunk < kExtent ? first + kChunk : kExtent;");
    }
  }

  // The coordinates of the flattened outer index.
  void print_axes(target::CodeWriter& out) const {
    int64_t below = loops_.outer;
    bool outermost = true;
    for (size_t k = 0; k < variables_.size(); ++k) {
      if (static_cast<int>(k) == loops_.lane_axis) continue;
      const int64_t extent = kernel_.rows[k].extent;
      below /= extent;
      std::string text = below == 1 ? "outer" : fmt::format("outer / {}", below);
      if (!outermost) text += fmt::format(" % {}", extent);
      out.line(fmt::format("const int64_t {} = {};", variables_[k], text));
      outermost = false;
    }
  }

  Result<void> print_lanes(target::CodeWriter& out) {
    const std::string& i = variables_[static_cast<size_t>(loops_.lane_axis)];
    const int width = loops_.lanes;
    const bool whole = loops_.extent % width == 0 && lane_chunk_ % width == 0;
    const bool vectors = loops_.extent >= width;
    out.line(fmt::format("int64_t {} = first;", i));
    if (vectors) {
      VectorPrinter printer(context_, width, bindings(true));
      TRY(print_stages(printer));
      out.lines(printer.invariant());
      if (unroll_ > 1) out.line(fmt::format("#pragma GCC unroll {}", unroll_));
      out.open(fmt::format("for (; {0} + {1} <= last; {0} += {1})", i, width));
      out.lines(printer.statements());
      out.close();
    }
    if (whole && vectors) return {};
    VectorPrinter printer(context_, 1, bindings(false));
    const bool streaming = std::exchange(streaming_, false);
    TRY(print_stages(printer));
    streaming_ = streaming;
    out.open(fmt::format("for (; {0} < last; ++{0})", i));
    out.lines(printer.statements());
    out.close();
    return {};
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  Loops loops_;
  std::vector<std::string> variables_;
  int64_t unroll_ = 1, rows_per_task_ = 1, lane_chunk_ = 1, blocks_ = 1, tasks_ = 1;
  bool parallel_ = false, streaming_ = false;
};

Result<KernelCode> print_map(PrintContext& context) {
  for (const FusedStage& stage : context.kernel.stages) {
    if (stage.reduce == ir::ReduceOp::none && stage.inner.empty()) continue;
    return Error{Errc::unavailable,
                 fmt::format("kernel {} of skeleton map has a stage that is no plain map",
                             context.kernel.name)};
  }
  const Loops loops = loops_of(context.program, context.kernel, context.machine);
  const auto schedule = map_choices(context.program, context.kernel, context.machine);
  return MapPrinter(context, loops, schedule).run();
}

}  // namespace

const SkeletonPrinter& map_skeleton() {
  static constexpr SkeletonPrinter printer{map_choices, map_estimate, print_map};
  return printer;
}

}  // namespace ke::x86
