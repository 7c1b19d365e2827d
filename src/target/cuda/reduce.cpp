// SPDX-License-Identifier: Apache-2.0
//
// The reduce skeleton: choosing a layout, and what an accumulator does. reduce_print.cpp prints.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "target/access.hpp"
#include "target/cuda/elements.hpp"
#include "target/cuda/reduce_plan.hpp"

namespace ke::cuda {

// Words of rows that the registers of a block keep: with ease, and at most.
constexpr int64_t kKeptWords = 32768, kKeptWordsMax = 49152;

using ir::DType;
using ir::FusedKernel;
using ir::FusedStage;
using ir::Program;
using ir::ReduceOp;

StageKind kind_of(const FusedStage& stage) {
  if (stage.reduce != ReduceOp::none) return StageKind::reduction;
  return stage.inner.empty() ? StageKind::row_value : StageKind::map;
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

std::string accumulator_type(const FusedStage& stage) {
  const std::string_view type = target::compute_type(accumulator_dtype(stage));
  return is_position(stage.reduce) ? fmt::format("ke_extreme<{}>", type) : std::string(type);
}

int64_t accumulator_bytes(const FusedStage& stage) {
  return is_position(stage.reduce) ? 16 : bytes_of(accumulator_dtype(stage));
}

namespace {

std::string least_or_greatest(DType dtype, bool least) {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      return float_literal(dtype, least ? -HUGE_VAL : HUGE_VAL);
    case DType::int64:
      return least ? "INT64_MIN" : "INT64_MAX";
    case DType::int32:
      return least ? "INT32_MIN" : "INT32_MAX";
    case DType::int16:
      return least ? "INT16_MIN" : "INT16_MAX";
    case DType::int8:
      return least ? "INT8_MIN" : "INT8_MAX";
    case DType::uint8:
      return least ? "0" : "UINT8_MAX";
    case DType::boolean:
      return least ? "false" : "true";
  }
  KE_ASSERT(false);
}

// Whether one set value decides (any, maximum and sum of booleans) or one clear value does.
bool is_any(ReduceOp op) {
  return op == ReduceOp::any || op == ReduceOp::maximum || op == ReduceOp::sum;
}

}  // namespace

std::string identity_of(const FusedStage& stage) {
  const DType dtype = accumulator_dtype(stage);
  const auto number = [&](int value) {
    if (dtype == DType::boolean) return std::string(value != 0 ? "true" : "false");
    return is_floating(dtype) ? float_literal(dtype, value) : std::to_string(value);
  };
  switch (stage.reduce) {
    case ReduceOp::sum:
      return number(0);
    case ReduceOp::product:
      return number(1);
    case ReduceOp::maximum:
      return least_or_greatest(dtype, true);
    case ReduceOp::minimum:
      return least_or_greatest(dtype, false);
    case ReduceOp::argmax:
    case ReduceOp::argmin:
      return fmt::format("{{{}, INT64_MAX}}",
                         least_or_greatest(dtype, stage.reduce == ReduceOp::argmax));
    case ReduceOp::any:
      return "false";
    case ReduceOp::all:
      return "true";
    case ReduceOp::none:
      break;
  }
  KE_ASSERT(false);
}

std::string joined(const FusedStage& stage, const std::string& a, const std::string& b) {
  const DType dtype = accumulator_dtype(stage);
  if (is_position(stage.reduce)) {
    return fmt::format("ke_{}({}, {})", enum_name(stage.reduce), a, b);
  }
  if (dtype == DType::boolean) {
    return fmt::format("{} {} {}", a, is_any(stage.reduce) ? "||" : "&&", b);
  }
  if (stage.reduce == ReduceOp::sum || stage.reduce == ReduceOp::product) {
    const bool sum = stage.reduce == ReduceOp::sum;
    if (is_floating(dtype)) return fmt::format("{} {} {}", a, sum ? "+" : "*", b);
    const std::string_view type = target::compute_type(dtype);
    return fmt::format("({})ke_int_{}({}, {})", type, sum ? "add" : "mul", a, b);
  }
  return fmt::format("ke_{}({}, {})", enum_name(stage.reduce), a, b);
}

Accumulator accumulator_for(const FusedStage& stage, const std::string& name, int64_t count) {
  const std::string type = accumulator_type(stage);
  const bool sum = stage.reduce == ReduceOp::sum && is_floating(accumulator_dtype(stage));
  if (!sum || count <= kRun) return {name, type, identity_of(stage)};
  return {name + "Sum", fmt::format("ke_sum<{}>", type), "{}", true};
}

std::string added(const FusedStage& stage, const Accumulator& to, const std::string& term) {
  if (!to.keeps_lost) return joined(stage, to.name, term);
  return fmt::format("ke_add<{}>({}, {})", accumulator_type(stage), to.name, term);
}

// --- Layout -------------------------------------------------------------------------------------

namespace {

struct LayoutScores {
  double inner = 0;          // of the best inner axis, over all stages
  std::vector<double> rows;  // of each row axis
  std::vector<int> lane_axis;
};

LayoutScores scores_of(const Program& program, const FusedKernel& kernel) {
  LayoutScores result;
  const size_t row_count = kernel.rows.size();
  result.rows.assign(row_count, 0);
  for (const FusedStage& stage : kernel.stages) {
    const std::vector<ir::Axis> axes = target::axes_of(kernel, stage);
    const std::vector<double> scores =
        target::lane_scores(program, stage, static_cast<int>(axes.size()));
    const auto score = [&](size_t k) { return scores[k] - (axes[k].extent < 8 ? 20 : 0); };
    int best = -1;
    for (size_t k = row_count; k < axes.size(); ++k) {
      if (best < 0 || score(k) >= score(static_cast<size_t>(best))) best = static_cast<int>(k);
    }
    result.lane_axis.push_back(best);
    if (best < 0) continue;
    result.inner += score(static_cast<size_t>(best));
    for (size_t k = 0; k < row_count; ++k) result.rows[k] += score(k);
  }
  return result;
}

int64_t longest_inner(const FusedKernel& kernel) {
  int64_t longest = 1;
  for (const FusedStage& stage : kernel.stages) {
    longest = std::max(longest, target::product_of(stage.inner));
  }
  return longest;
}

int64_t widest_of(const Program& program, const FusedKernel& kernel, size_t s, int lane_axis) {
  const FusedStage& stage = kernel.stages[s];
  if (lane_axis < 0) return 1;
  FusedStage seen = stage;
  // What a reduction stores is one value a row.
  int64_t width = widest_group(program, {seen}, lane_axis);
  const int64_t extent = stage.inner[static_cast<size_t>(lane_axis) - kernel.rows.size()].extent;
  while (width > 1 && extent % width != 0) width /= 2;
  return width;
}

// The layout that memory suggests, and whether the other one is possible.
ReducePlan basic_plan(const Program& program, const FusedKernel& kernel, bool& either) {
  ReducePlan plan;
  plan.rows = target::product_of(kernel.rows);
  plan.longest = longest_inner(kernel);
  const LayoutScores scores = scores_of(program, kernel);
  plan.lane_axis = scores.lane_axis;
  for (size_t k = 0; k < scores.rows.size(); ++k) {
    const bool better =
        plan.row_axis < 0 || scores.rows[k] >= scores.rows[static_cast<size_t>(plan.row_axis)];
    if (better) plan.row_axis = static_cast<int>(k);
  }
  either = plan.row_axis >= 0 && kernel.rows[static_cast<size_t>(plan.row_axis)].extent >= 8;
  plan.columns = either && scores.rows[static_cast<size_t>(plan.row_axis)] > scores.inner;
  return plan;
}

int64_t power_up_to(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

// As few blocks as keep a row of one tensor in their registers.
int64_t preferred_cluster(const ReducePlan& plan, const Device& device) {
  int64_t cluster = 1;
  while (cluster < device.cluster_max && cluster * kKeptWords < plan.longest) cluster *= 2;
  return cluster * kKeptWordsMax < plan.longest ? 1 : cluster;
}

// Threads of a block for one row: each should have about eight loads of 16 bytes to do, as long as
// rows alone fill the device. As many registers as the fullest block needs, only 512 threads have.
int64_t preferred_members(const ReducePlan& plan, const Device& device) {
  const int64_t own = plan.longest / plan.cluster;
  const bool full = plan.cluster > 1 && own > kKeptWords;
  const int64_t by_length = power_up_to(std::clamp<int64_t>(own / 32, 1, full ? 512 : 1024));
  if (full) return by_length;
  const int64_t by_rows =
      power_up_to(std::clamp<int64_t>(device.threads() / std::max<int64_t>(plan.rows, 1), 1, 1024));
  return std::clamp<int64_t>(std::max(by_length, std::min(by_rows, plan.longest)), 1, 1024);
}

int64_t preferred_split(const ReducePlan& plan, int64_t blocks, const Device& device) {
  const int64_t wanted = 2 * device.multiprocessors / std::max<int64_t>(blocks, 1);
  // A part should be worth a launch: some thousand elements for each block.
  return power_up_to(std::clamp<int64_t>(std::min(wanted, plan.longest / 4096), 1, 256));
}

}  // namespace

namespace {

bool walks_often(const FusedKernel& kernel) {
  return std::count_if(kernel.stages.begin(), kernel.stages.end(), [](const FusedStage& stage) {
           return kind_of(stage) != StageKind::row_value;
         }) > 1;
}

}  // namespace

std::vector<ScheduleChoice> reduce_choices(const Program& program, const FusedKernel& kernel,
                                           const Device& device) {
  bool either = false;
  ReducePlan plan = basic_plan(program, kernel, either);
  if (plan.rows == 0) return {};
  std::vector<ScheduleChoice> choices;
  if (either) {
    choices.push_back({"columns", {0, 1}, plan.columns ? 1 : 0});
    plan.columns = target::chosen(kernel, choices, "columns") != 0;
  }
  int64_t blocks = 1;
  if (plan.columns) {
    // Wide tiles share the pieces of memory at their edges with fewer others.
    const int64_t extent = kernel.rows[static_cast<size_t>(plan.row_axis)].extent;
    const bool wide = extent >= 128 && plan.rows / 128 >= 2 * device.multiprocessors;
    const int64_t lanes = wide ? 128 : 32;
    const int64_t per_row = std::clamp<int64_t>(plan.longest / (wide ? 64 : 16), 2, wide ? 8 : 32);
    choices.push_back(powers_choice("columns_a_block", 32, 256, lanes));
    choices.push_back(powers_choice("block", 64, 1024, lanes * power_up_to(per_row)));
    blocks = plan.rows / lanes;
  } else {
    if (walks_often(kernel) && plan.longest >= 4096) {
      choices.push_back(
          powers_choice("cluster", 1, device.cluster_max, preferred_cluster(plan, device)));
      plan.cluster = target::chosen(kernel, choices, "cluster");
    }
    const int64_t members = preferred_members(plan, device);
    choices.push_back(powers_choice("threads_per_row", 1, 1024, members));
    // Rows of one block wait for each other at joins beyond a warp.
    const int64_t block = members > 32 ? members : 256;
    choices.push_back(powers_choice("block", 64, 1024, block));
    choices.push_back(powers_choice("width", 1, 8, 4));
    blocks = plan.rows * members / block * plan.cluster;
  }
  choices.push_back(powers_choice("in_flight", 1, 8, plan.columns ? 8 : 4));
  if (plan.longest >= 4096) {
    choices.push_back(powers_choice("split", 1, 256, preferred_split(plan, blocks, device)));
  }
  if (walks_often(kernel)) choices.push_back({"keep_row", {0, 1}, 1});
  if (can_recompute(program, kernel)) choices.push_back({"recompute", {0, 1}, 1});
  return choices;
}

ReducePlan reduce_plan(const Program& program, const FusedKernel& kernel, const Device& device) {
  bool either = false;
  ReducePlan plan = basic_plan(program, kernel, either);
  const std::vector<ScheduleChoice> choices = reduce_choices(program, kernel, device);
  const auto value = [&](std::string_view name, int64_t otherwise) {
    const auto named = [&](const ScheduleChoice& choice) { return choice.name == name; };
    const bool has = std::any_of(choices.begin(), choices.end(), named);
    return has ? target::chosen(kernel, choices, name) : otherwise;
  };
  plan.columns = value("columns", plan.columns ? 1 : 0) != 0;
  plan.block = value("block", 256);
  plan.lanes = value("columns_a_block", 32);
  plan.cluster = plan.columns ? 1 : value("cluster", 1);
  plan.block = std::max(plan.block, plan.columns ? plan.lanes : value("threads_per_row", 32));
  plan.members = plan.columns       ? plan.block / plan.lanes
                 : plan.cluster > 1 ? plan.block
                                    : value("threads_per_row", 32);
  plan.split = plan.cluster > 1 ? 1 : value("split", 1);
  plan.recompute = value("recompute", 0) != 0;
  plan.keep_row = value("keep_row", 0) != 0 && plan.split == 1;
  plan.in_flight = value("in_flight", 1);
  const int64_t widest = plan.columns ? 1 : value("width", 1);
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    if (plan.columns) plan.lane_axis[s] = -1;
    plan.width.push_back(std::min(widest, widest_of(program, kernel, s, plan.lane_axis[s])));
  }
  return plan;
}

bool can_recompute(const Program& program, const FusedKernel& kernel) {
  PrintContext context{program, kernel};
  return recomputed(context).stages.size() < kernel.stages.size();
}

namespace {

bool same_inner(const FusedStage& a, const FusedStage& b) {
  return std::equal(a.inner.begin(), a.inner.end(), b.inner.begin(), b.inner.end(),
                    [](const ir::Axis& x, const ir::Axis& y) { return x.extent == y.extent; });
}

// Every load of `tensor` replaced by `value`, which has the same axes.
ir::ExprPtr with_loads_replaced(const ir::ExprPtr& expr, ir::TensorId tensor,
                                const ir::ExprPtr& value) {
  if (expr->kind == ir::Expr::Kind::load && expr->tensor == tensor) return value;
  std::vector<ir::ExprPtr> operands;
  bool changed = false;
  for (const ir::ExprPtr& operand : expr->operands) {
    operands.push_back(with_loads_replaced(operand, tensor, value));
    changed = changed || operands.back() != operand;
  }
  return changed ? ir::with_operands(*expr, std::move(operands)) : expr;
}

// Whether two passes visit the same points with the same threads.
bool same_walk(const FusedKernel& kernel, const ReducePlan& plan, size_t a, size_t b) {
  return same_inner(kernel.stages[a], kernel.stages[b]) && plan.lane_axis[a] == plan.lane_axis[b] &&
         plan.width[a] == plan.width[b];
}

// Whether the load walks the row, through no other tensor.
bool is_keepable(const PrintContext& context, const ReducePlan& plan, size_t s,
                 const ir::Expr& load) {
  const FusedKernel& kernel = context.kernel;
  bool walks = false;
  for (size_t k = kernel.rows.size(); k < kernel.rows.size() + kernel.stages[s].inner.size(); ++k) {
    walks = walks || target::depends_on_axis(load, static_cast<int>(k));
  }
  return walks && is_early(context, load, plan.lane_axis[s], plan.width[s]);
}

bool has_load(const std::vector<LoadArray>& arrays, const ir::Expr& load) {
  const auto is_it = [&](const LoadArray& array) { return same(*array.load, load); };
  return std::any_of(arrays.begin(), arrays.end(), is_it);
}

bool is_spared(const PrintContext& context, const FusedKernel& kernel, size_t s) {
  const FusedStage& stage = kernel.stages[s];
  const bool local = context.tensor(stage.output).role == ir::Role::intermediate &&
                     !context.elsewhere.contains(stage.output);
  if (kind_of(stage) != StageKind::map || !local) return false;
  for (const FusedStage& reader : kernel.stages) {
    if (!reads(reader, stage.output)) continue;
    if (!same_inner(reader, stage) || reads_elsewhere(reader, stage)) return false;
  }
  return true;
}

}  // namespace

int64_t turns_of(const FusedKernel& kernel, const ReducePlan& plan, size_t s) {
  const int64_t groups = target::product_of(kernel.stages[s].inner) / plan.width[s];
  return (groups + plan.walkers() - 1) / plan.walkers();
}

bool makes_load(const FusedStage& stage, const ir::Expr& load) {
  for (const ir::ExprPtr& made : certain_loads(stage.body)) {
    if (same(*made, load)) return true;
  }
  return false;
}

std::vector<LoadArray> kept_loads(PrintContext& context, const ReducePlan& plan) {
  const FusedKernel& kernel = context.kernel;
  std::vector<LoadArray> kept;
  if (!plan.keep_row) return kept;
  int64_t words = 0;
  for (size_t a = 0; a < kernel.stages.size(); ++a) {
    if (kind_of(kernel.stages[a]) == StageKind::row_value) continue;
    for (const ir::ExprPtr& load : certain_loads(kernel.stages[a].body)) {
      if (has_load(kept, *load) || !is_keepable(context, plan, a, *load)) continue;
      bool again = false, elsewhere = false;
      for (size_t b = 0; b < kernel.stages.size(); ++b) {
        if (b == a || !makes_load(kernel.stages[b], *load)) continue;
        (same_walk(kernel, plan, a, b) ? again : elsewhere) = true;
      }
      if (!again || elsewhere) continue;
      const int64_t own =
          plan.block * turns_of(kernel, plan, a) * words_of(context, *load, plan.width[a]);
      if (words + own > kKeptWordsMax) continue;
      words += own;
      const std::string& name = context.tensor(load->tensor).name;
      kept.push_back({load, context.fresh(name + "Kept"), plan.width[a]});
    }
  }
  return kept;
}

int64_t early_turns(const ReducePlan& plan, int64_t count) {
  return power_up_to(std::min(plan.in_flight, count / plan.walkers()));
}

std::vector<LoadArray> early_loads(PrintContext& context, const ReducePlan& plan, size_t s,
                                   int64_t turns) {
  std::vector<LoadArray> early;
  if (turns < 2) return early;
  int64_t words = std::min<int64_t>(32768 / plan.block, 64);  // of a thread
  for (const ir::ExprPtr& load : certain_loads(context.kernel.stages[s].body)) {
    const int64_t own = turns * words_of(context, *load, plan.width[s]);
    if (own > words || has_load(early, *load) || !is_keepable(context, plan, s, *load)) continue;
    words -= own;
    const std::string& name = context.tensor(load->tensor).name;
    early.push_back({load, context.fresh(name + "Early"), plan.width[s]});
  }
  return early;
}

FusedKernel recomputed(const PrintContext& context) {
  FusedKernel kernel = context.kernel;
  for (size_t s = 0; s < kernel.stages.size();) {
    if (!is_spared(context, kernel, s)) {
      ++s;
      continue;
    }
    const FusedStage gone = kernel.stages[s];
    const ir::ExprPtr value = ir::cast(context.tensor(gone.output).dtype, gone.body);
    for (FusedStage& reader : kernel.stages) {
      reader.body = with_loads_replaced(reader.body, gone.output, value);
    }
    kernel.stages.erase(kernel.stages.begin() + static_cast<long>(s));
    std::erase(kernel.writes, gone.output);
  }
  return kernel;
}

namespace {

// How much of a row is read again by each pass after the first: what waits in registers is not,
// and what the rows under way leave in the cache half.
double read_again(const Program& program, const FusedKernel& kernel, const ReducePlan& plan,
                  const KernelWork& work, const Device& device) {
  PrintContext context{program, kernel};
  if (!kept_loads(context, plan).empty()) return 0;
  const double rows = static_cast<double>(device.threads()) / static_cast<double>(plan.walkers());
  const double under_way = std::min(1.0, rows / static_cast<double>(plan.rows)) * work.read;
  return under_way < static_cast<double>(device.l2_bytes) / 2 ? 0.35 : 1;
}

double reduce_estimate(const Program& program, const FusedKernel& asked, const Device& device) {
  FusedKernel kernel = asked;
  ReducePlan plan = reduce_plan(program, kernel, device);
  if (plan.rows == 0) return device.launch_ns;
  if (plan.recompute) {
    kernel = recomputed(PrintContext{program, asked});
    plan = reduce_plan(program, kernel, device);
  }
  KernelWork work = work_of(program, kernel);
  double passes = 0;
  for (const FusedStage& stage : kernel.stages) {
    passes += kind_of(stage) == StageKind::row_value ? 0 : 1;
  }
  work.read *= 1 + read_again(program, kernel, plan, work, device) * std::max(0.0, passes - 1);
  const double launches = plan.split > 1 ? passes + 1 : 1;
  const double threads = static_cast<double>(plan.rows * plan.walkers() * plan.split);
  const int64_t width = *std::max_element(plan.width.begin(), plan.width.end());
  const int64_t turns = early_turns(plan, std::max(plan.longest / width, plan.walkers()));
  // As measured: few bytes in flight a thread leave memory idle, and so do the waits of clusters.
  const double bytes = static_cast<double>(4 * width * turns);
  const double clusters = 1 + 0.13 * std::log2(static_cast<double>(plan.cluster));
  const double share = (1 - 0.5 / bytes) / clusters;
  return kernel_ns(work, threads, share, device) + (launches - 1) * device.launch_ns;
}

Result<KernelCode> print_reduce(PrintContext& context, const Device& device) {
  const ReducePlan plan = reduce_plan(context.program, context.kernel, device);
  if (plan.rows == 0) {
    KernelCode code;
    code.schedule = "Nothing to compute.";
    return code;
  }
  if (!plan.recompute) return print_reduce_kernel(context, plan);
  FusedKernel rewritten = recomputed(context);
  rewritten.schedule = context.kernel.schedule;
  PrintContext own{context.program, rewritten, context.elsewhere};
  KernelCode code = TRY(print_reduce_kernel(own, reduce_plan(context.program, rewritten, device)));
  code.rewritten = std::move(rewritten);
  return code;
}

}  // namespace

const SkeletonPrinter& reduce_skeleton() {
  static constexpr SkeletonPrinter printer{reduce_choices, reduce_estimate, print_reduce};
  return printer;
}

}  // namespace ke::cuda
