// SPDX-License-Identifier: Apache-2.0
//
// Reductions with the lanes along an inner axis, whole rows a task.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/x86/reduce_passes.hpp"

namespace ke::x86 {
namespace {

using ir::FusedKernel;
using ir::FusedStage;

Result<void> print_stage(RowPasses& passes, target::CodeWriter& out, size_t s) {
  const FusedStage& stage = passes.stage(s);
  if (!stage.origin.empty()) out.line("// " + stage.origin.substr(0, 90));
  switch (kind_of(stage)) {
    case StageKind::reduction:
      passes.print_reduction(out, s, {});
      passes.print_result(out, s, true);
      return {};
    case StageKind::row_value:
      passes.print_row_value(out, s, true);
      return {};
    case StageKind::map:
      return passes.print_map(out, s, {});
  }
  KE_ASSERT(false);
}

}  // namespace

Result<KernelCode> print_inner_lanes(PrintContext& context, const ReducePlan& plan) {
  const FusedKernel& kernel = context.kernel;
  const ArgumentBlock block = argument_block(context, false);
  RowPasses passes(context, plan);
  target::CodeWriter out;
  out.open(
      fmt::format("static void {}([[maybe_unused]] int64_t task, void* argument)", kernel.name));
  out.lines(block.unpack);
  out.line(fmt::format("constexpr int64_t kRows = {}, kRowsPerTask = {};", plan.rows,
                       plan.rows_per_task));
  out.line("const int64_t begin = task * kRowsPerTask;");
  out.line("const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;");
  out.open("for (int64_t row = begin; row < end; ++row)");
  passes.print_row_axes(out);
  for (size_t s = 0; s < kernel.stages.size(); ++s) TRY(print_stage(passes, out, s));
  out.close();
  if (plan.streaming) out.line("__builtin_ia32_sfence();");
  out.close();
  KernelCode code;
  code.functions = block.declaration + out.take();
  code.launch = declare_arguments(block) + launch_tasks(context, block, kernel.name,
                                                        std::to_string(plan.tasks), plan.parallel);
  code.helpers = context.helpers;
  code.schedule = fmt::format(
      "Schedule: a row stays in cache from one pass to the next; vectors of {} along it, {} "
      "accumulators; {} tasks of {} rows {}.{}",
      plan.lanes, plan.unroll, plan.tasks, plan.rows_per_task,
      plan.parallel ? "over the threads" : "on one thread",
      notes_of(plan));
  return code;
}

}  // namespace ke::x86
