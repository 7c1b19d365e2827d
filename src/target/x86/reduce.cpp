// SPDX-License-Identifier: Apache-2.0
//
// The reduce skeleton: choosing a layout and what an accumulator does. The layouts are printed by
// reduce_inner.cpp, reduce_split.cpp and reduce_rows.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/x86/reduce_plan.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {

using ir::DType;
using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;
using ir::ReduceOp;

StageKind kind_of(const FusedStage& stage) {
  if (stage.reduce != ReduceOp::none) return StageKind::reduction;
  return stage.inner.empty() ? StageKind::row_value : StageKind::map;
}

std::vector<ir::TensorId> row_values(const FusedKernel& kernel) {
  std::vector<ir::TensorId> values;
  for (const FusedStage& stage : kernel.stages) {
    if (kind_of(stage) != StageKind::map) values.push_back(stage.output);
  }
  return values;
}

bool is_internal(const FusedKernel& kernel, ir::TensorId tensor) {
  return std::find(kernel.internals.begin(), kernel.internals.end(), tensor) !=
         kernel.internals.end();
}

bool reads(const FusedStage& stage, ir::TensorId tensor) {
  bool found = false;
  walk(stage.body, [&](const ir::Expr& expr) {
    found = found || (expr.kind == ir::Expr::Kind::load && expr.tensor == tensor);
  });
  return found;
}

// --- Accumulators -------------------------------------------------------------------------------

bool is_position(ReduceOp op) { return op == ReduceOp::argmax || op == ReduceOp::argmin; }

DType accumulator_dtype(const FusedStage& stage) {
  DType dtype = stage.body->dtype;
  if (stage.reduce == ReduceOp::sum || stage.reduce == ReduceOp::product) {
    dtype = stage.accumulator;
  }
  if (stage.reduce == ReduceOp::any || stage.reduce == ReduceOp::all) dtype = DType::boolean;
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

DType total_dtype(const FusedStage& stage, int64_t accumulators) {
  const DType dtype = accumulator_dtype(stage);
  const bool joins = stage.reduce == ReduceOp::sum && dtype == DType::float32 &&
                     product_of(stage.inner) > kRun * accumulators;
  return joins ? DType::float64 : dtype;
}

namespace {

std::string extreme_of(DType dtype, bool lowest) {
  switch (dtype) {
    case DType::float64:
      return lowest ? "-__builtin_inf()" : "__builtin_inf()";
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      return lowest ? "-__builtin_inff()" : "__builtin_inff()";
    case DType::int64:
      return lowest ? "INT64_MIN" : "INT64_MAX";
    case DType::int32:
      return lowest ? "INT32_MIN" : "INT32_MAX";
    case DType::int16:
      return lowest ? "INT16_MIN" : "INT16_MAX";
    case DType::int8:
      return lowest ? "INT8_MIN" : "INT8_MAX";
    case DType::uint8:
      return lowest ? "0" : "UINT8_MAX";
    case DType::boolean:
      return lowest ? "false" : "true";
  }
  KE_ASSERT(false);
}

bool is_logical(const FusedStage& stage) {
  return accumulator_dtype(stage) == DType::boolean && !is_position(stage.reduce);
}

// Whether one set lane decides (any, maximum and sum of booleans) or one clear lane does.
bool is_any(ReduceOp op) {
  return op == ReduceOp::any || op == ReduceOp::maximum || op == ReduceOp::sum;
}

}  // namespace

std::string identity_of(ReduceOp op, DType dtype) {
  const auto number = [&](int value) {
    if (dtype == DType::boolean) return std::string(value != 0 ? "true" : "false");
    return is_floating(dtype) ? target::float_literal(dtype, value) : std::to_string(value);
  };
  switch (op) {
    case ReduceOp::sum:
      return number(0);
    case ReduceOp::product:
      return number(1);
    case ReduceOp::maximum:
    case ReduceOp::argmax:
      return extreme_of(dtype, true);
    case ReduceOp::minimum:
    case ReduceOp::argmin:
      return extreme_of(dtype, false);
    case ReduceOp::any:
      return "false";
    case ReduceOp::all:
      return "true";
    case ReduceOp::none:
      break;
  }
  KE_ASSERT(false);
}

std::string combined(PrintContext& context, const FusedStage& stage, int lanes,
                     const std::string& a, const std::string& b) {
  if (is_logical(stage)) return fmt::format("{} {} {}", a, is_any(stage.reduce) ? "|" : "&", b);
  if (stage.reduce == ReduceOp::sum) return fmt::format("{} + {}", a, b);
  if (stage.reduce == ReduceOp::product) return fmt::format("{} * {}", a, b);
  const std::string_view name = enum_name(stage.reduce);
  const DType dtype = accumulator_dtype(stage);
  const std::string type = lanes > 1 ? vector_type(context, dtype, lanes) : memory_type(dtype, 1);
  context.helpers.insert(fmt::format("{}:{}", name, type));
  return fmt::format("{}_of({}, {})", name, a, b);
}

std::string across_lanes(PrintContext& context, const FusedStage& stage, int lanes,
                         const Value& vector) {
  const std::string type = vector_type(context, vector.dtype, lanes);
  if (is_logical(stage)) {
    const std::string_view what = is_any(stage.reduce) ? "any" : "all";
    context.helpers.insert(fmt::format("{}:{}", what, type));
    return fmt::format("{}_of({})", what, vector.text);
  }
  context.helpers.insert(fmt::format("{}_lanes:{}", enum_name(stage.reduce), type));
  return fmt::format("{}_of_lanes({})", enum_name(stage.reduce), vector.text);
}

std::string replaces(const FusedStage& stage, const std::string& v, const std::string& top,
                     bool vector) {
  const std::string_view sign = stage.reduce == ReduceOp::argmax ? ">" : "<";
  if (!is_floating(accumulator_dtype(stage))) return fmt::format("({} {} {})", v, sign, top);
  if (vector) return fmt::format("(({0} {1} {2}) | (({0} != {0}) & ({2} == {2})))", v, sign, top);
  return fmt::format("({0} {1} {2} || ({0} != {0} && {2} == {2}))", v, sign, top);
}

// --- Layout -------------------------------------------------------------------------------------

namespace {

// Iterations of a stage, all rows together.
double iterations(const FusedKernel& kernel, const FusedStage& stage) {
  return static_cast<double>(product_of(axes_of(kernel, stage)));
}

struct ReduceWork {
  double read = 0, written = 0, operations = 0, passes = 0;
};

ReduceWork work_of(const Program& program, const FusedKernel& kernel) {
  ReduceWork work;
  for (const ir::TensorId id : kernel.reads) {
    work.read += static_cast<double>(footprint_bytes(program.tensor(id)));
  }
  for (const ir::TensorId id : kernel.writes) {
    work.written += static_cast<double>(footprint_bytes(program.tensor(id)));
  }
  for (const FusedStage& stage : kernel.stages) {
    work.operations += (operations(*stage.body) + 1) * iterations(kernel, stage);
    work.passes += kind_of(stage) == StageKind::row_value ? 0 : 1;
  }
  return work;
}

int64_t longest_inner(const FusedKernel& kernel) {
  int64_t longest = 1;
  for (const FusedStage& stage : kernel.stages) {
    longest = std::max(longest, product_of(stage.inner));
  }
  return longest;
}

// Scores of the best inner axis (summed over stages) and of every row axis.
struct LayoutScores {
  double inner = 0;
  std::vector<double> rows;
  std::vector<int> lane_axis;
};

LayoutScores layout_scores(const Program& program, const FusedKernel& kernel, int lanes) {
  LayoutScores result;
  const int row_count = static_cast<int>(kernel.rows.size());
  result.rows.assign(kernel.rows.size(), 0);
  for (const FusedStage& stage : kernel.stages) {
    const std::vector<ir::Axis> axes = axes_of(kernel, stage);
    const std::vector<double> scores = lane_scores(program, stage, static_cast<int>(axes.size()));
    int best = -1;
    for (int axis = row_count; axis < static_cast<int>(axes.size()); ++axis) {
      const auto k = static_cast<size_t>(axis);
      const double penalty = axes[k].extent < lanes ? -20 : 0;
      const double current = best < 0
                                 ? 0
                                 : scores[static_cast<size_t>(best)] +
                                       (axes[static_cast<size_t>(best)].extent < lanes ? -20 : 0);
      if (best < 0 || scores[k] + penalty >= current) best = axis;
    }
    // The order of positions matters to argmax: only the last axis can be its lanes.
    if (is_position(stage.reduce)) best = static_cast<int>(axes.size()) - 1;
    result.lane_axis.push_back(best);
    if (best < 0) continue;
    const bool short_axis = axes[static_cast<size_t>(best)].extent < lanes;
    result.inner += scores[static_cast<size_t>(best)] - (short_axis ? 20 : 0);
    for (int axis = 0; axis < row_count; ++axis) {
      const auto k = static_cast<size_t>(axis);
      result.rows[k] += scores[k] - (axes[k].extent < lanes ? 20 : 0);
    }
  }
  return result;
}

int best_row_axis(const LayoutScores& scores) {
  int best = -1;
  for (size_t k = 0; k < scores.rows.size(); ++k) {
    if (best < 0 || scores.rows[k] >= scores.rows[static_cast<size_t>(best)]) {
      best = static_cast<int>(k);
    }
  }
  return best;
}

bool has_map(const FusedKernel& kernel) {
  return std::any_of(kernel.stages.begin(), kernel.stages.end(),
                     [](const FusedStage& s) { return kind_of(s) == StageKind::map; });
}

bool can_stream(const Program& program, const FusedKernel& kernel, const ReducePlan& plan) {
  if (!has_map(kernel) || plan.kept) return false;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const FusedStage& stage = kernel.stages[s];
    if (kind_of(stage) != StageKind::map) continue;
    const int axis = plan.rows_in_lanes ? plan.row_axis : plan.lane_axis[s];
    if (!stores_aligned(program, stage, axis, plan.lanes)) return false;
    for (const FusedStage& later : kernel.stages) {
      if (reads(later, stage.output)) return false;
    }
  }
  return true;
}

// Rows can be split when every pass has a lane axis and no pass gives positions of several axes.
bool can_split(const FusedKernel& kernel) {
  return longest_inner(kernel) >= 4096 &&
         std::all_of(kernel.stages.begin(), kernel.stages.end(), [](const FusedStage& stage) {
           return stage.inner.size() <= 1 || !is_position(stage.reduce);
         });
}

// The tile that keeps what several passes share in half of the second-level cache.
int64_t preferred_tile(const FusedKernel& kernel, const ReduceWork& work, const ReducePlan& plan,
                       const MachineProfile& machine) {
  const int64_t extent = kernel.rows[static_cast<size_t>(plan.row_axis)].extent;
  int64_t tile = work.passes > 1
                     ? machine.l2_bytes / 2 / 4 / std::max<int64_t>(1, longest_inner(kernel))
                     : 1024;
  tile = std::clamp<int64_t>(tile, 64, 1024);
  while (tile > 64 && plan.outer * ((extent + tile - 1) / tile) < 4 * machine.threads) tile /= 2;
  return tile;
}

ReducePlan basic_plan(const Program& program, const FusedKernel& kernel,
                      const MachineProfile& machine, bool& free_layout) {
  ReducePlan plan;
  plan.lanes = natural_lanes(program, kernel, machine);
  plan.rows = product_of(kernel.rows);
  const LayoutScores scores = layout_scores(program, kernel, plan.lanes);
  plan.lane_axis = scores.lane_axis;
  plan.row_axis = best_row_axis(scores);
  free_layout =
      plan.row_axis >= 0 && kernel.rows[static_cast<size_t>(plan.row_axis)].extent >= plan.lanes;
  plan.rows_in_lanes =
      free_layout && scores.rows[static_cast<size_t>(plan.row_axis)] > scores.inner;
  return plan;
}

}  // namespace

std::vector<ScheduleChoice> reduce_choices(const Program& program, const FusedKernel& kernel,
                                           const MachineProfile& machine) {
  bool free_layout = false;
  ReducePlan plan = basic_plan(program, kernel, machine, free_layout);
  if (plan.rows == 0) return {};
  const ReduceWork work = work_of(program, kernel);
  std::vector<ScheduleChoice> choices;
  if (free_layout) choices.push_back({"rows_in_lanes", {0, 1}, plan.rows_in_lanes ? 1 : 0});
  if (free_layout) plan.rows_in_lanes = chosen(kernel, choices, "rows_in_lanes") != 0;
  const double weight = work.read + work.written + work.operations;
  const bool parallel = machine.threads > 1 && weight > 1e5;
  choices.push_back({"parallel", {0, 1}, parallel ? 1 : 0});
  if (plan.rows_in_lanes) {
    const int64_t extent = kernel.rows[static_cast<size_t>(plan.row_axis)].extent;
    plan.outer = plan.rows / extent;
    choices.push_back(powers_choice("tile", 64, std::min<int64_t>(2 * extent, 4096),
                             preferred_tile(kernel, work, plan, machine)));
  } else {
    const int64_t per_task =
        std::min(plan.rows / (8 * machine.threads), 65536 / longest_inner(kernel));
    choices.push_back(powers_choice("rows_per_task", 1, std::min<int64_t>(plan.rows, 1024),
                             std::max<int64_t>(per_task, 1)));
    choices.push_back({"unroll", {1, 2, 4, 8}, 4});
    const bool few = parallel && plan.rows < 2 * machine.threads;
    const double row_bytes =
        (work.read + work.written) / static_cast<double>(std::max<int64_t>(plan.rows, 1));
    const bool long_rows = parallel && work.passes > 1 &&
                           row_bytes > 2.0 * static_cast<double>(machine.l2_bytes) &&
                           row_bytes < static_cast<double>(machine.llc_bytes);
    if (can_split(kernel)) {
      const int64_t parts = few || long_rows ? 4 * machine.threads : 1;
      choices.push_back(powers_choice("split", 1, 64, parts));
    }
    if (const auto kept = kept_term(program, kernel)) {
      choices.push_back({"keep_terms", {0, 1}, 1});
      if (chosen(kernel, choices, "keep_terms") != 0) plan.kept = kept;
    }
  }
  if (can_stream(program, kernel, plan)) {
    choices.push_back({"streaming", {0, 1}, prefers_streaming(program, kernel, machine) ? 1 : 0});
  }
  return choices;
}

ReducePlan reduce_plan(const Program& program, const FusedKernel& kernel,
                       const MachineProfile& machine) {
  bool free_layout = false;
  ReducePlan plan = basic_plan(program, kernel, machine, free_layout);
  const std::vector<ScheduleChoice> choices = reduce_choices(program, kernel, machine);
  const auto value = [&](std::string_view name, int64_t otherwise) {
    for (const ScheduleChoice& choice : choices) {
      if (choice.name == name) return chosen(kernel, choices, name);
    }
    return otherwise;
  };
  plan.rows_in_lanes = value("rows_in_lanes", plan.rows_in_lanes ? 1 : 0) != 0;
  plan.outer = plan.rows;
  plan.unroll = value("unroll", 1);
  plan.streaming = value("streaming", 0) != 0;
  if (value("keep_terms", 0) != 0) plan.kept = kept_term(program, kernel);
  if (plan.rows_in_lanes) {
    const int64_t extent = kernel.rows[static_cast<size_t>(plan.row_axis)].extent;
    plan.outer = plan.rows / std::max<int64_t>(extent, 1);
    plan.tile = value("tile", 64);
    plan.tiles = (extent + plan.tile - 1) / plan.tile;
    plan.tasks = plan.outer * plan.tiles;
  } else {
    plan.rows_per_task = value("rows_per_task", 1);
    plan.split = value("split", 1);
    plan.tasks = (plan.rows + plan.rows_per_task - 1) / plan.rows_per_task;
  }
  const double row_bytes = 4.0 * static_cast<double>(longest_inner(kernel));
  plan.row_at_a_time = plan.rows > 1 && row_bytes > 5e5;
  plan.parallel = value("parallel", 0) != 0 && plan.tasks * plan.split > 1;
  return plan;
}

std::string notes_of(const ReducePlan& plan) {
  std::string notes;
  if (plan.kept) notes += " The terms of the reduction wait in the output.";
  if (plan.streaming) notes += " Stores pass the caches by.";
  return notes;
}

double reduce_estimate(const Program& program, const FusedKernel& kernel,
                       const MachineProfile& machine) {
  const ReducePlan plan = reduce_plan(program, kernel, machine);
  const ReduceWork work =
      work_of(program, plan.kept ? with_kept_term(kernel, *plan.kept) : kernel);
  const double total = work.read + work.written;
  // What a task goes over again must come from where it stayed since the pass before.
  const double concurrent = plan.parallel ? machine.threads : 1;
  const double per_task = total / static_cast<double>(std::max<int64_t>(1, plan.tasks)) *
                          (plan.split > 1 && plan.row_at_a_time ? 1 : concurrent);
  const double again = std::max(0.0, work.passes - 1) * work.read;
  const double written = work.written * (plan.streaming ? 1 : 2);
  double time = move_ns(work.read + written, total, plan.parallel, machine);
  time += move_ns(again, per_task, plan.parallel, machine) *
          (per_task < static_cast<double>(machine.l2_bytes) ? 0.3 : 1.0);
  const double arithmetic = compute_ns(work.operations, true, plan.parallel, machine);
  const double joins =
      plan.split > 1 ? work.passes * (plan.row_at_a_time ? static_cast<double>(plan.rows) : 1.0)
                     : 1;
  return std::max(time, arithmetic) + (plan.parallel ? joins * kForkJoinNs : 100) +
         static_cast<double>(plan.tasks) * 50;
}

namespace {

Result<KernelCode> print_layout(PrintContext& context, const ReducePlan& plan) {
  if (plan.rows == 0) {
    KernelCode code;
    code.schedule = "Nothing to compute.";
    return code;
  }
  if (plan.rows_in_lanes) return print_row_lanes(context, plan);
  if (plan.split > 1) return print_split(context, plan);
  return print_inner_lanes(context, plan);
}

Result<KernelCode> print_reduce(PrintContext& context) {
  const ReducePlan plan = reduce_plan(context.program, context.kernel, context.machine);
  if (!plan.kept) return print_layout(context, plan);
  const FusedKernel rewritten = with_kept_term(context.kernel, *plan.kept);
  PrintContext own{context.program, context.machine, rewritten};
  return print_layout(own, plan);
}

}  // namespace

const SkeletonPrinter& reduce_skeleton() {
  static constexpr SkeletonPrinter printer{reduce_choices, reduce_estimate, print_reduce};
  return printer;
}

}  // namespace ke::x86
