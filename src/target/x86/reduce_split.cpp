// SPDX-License-Identifier: Apache-2.0
//
// Reductions over few, long rows: each row is cut into parts. Every pass over a row is one
// parallel_for over its parts; partial results meet in scratch, and whoever needs the row's value
// adds them up again, in the same order.
#include <fmt/format.h>

#include <algorithm>

#include "target/x86/reduce_passes.hpp"

namespace ke::x86 {
namespace {

using ir::FusedKernel;
using ir::FusedStage;

// Consecutive stages that one parallel_for can do: none needs what another one reduces.
using Phase = std::vector<size_t>;

bool depends_on(const FusedKernel& kernel, size_t s, const std::vector<ir::TensorId>& pending) {
  return std::any_of(pending.begin(), pending.end(),
                     [&](ir::TensorId id) { return reads(kernel.stages[s], id); });
}

// The passes of each phase. Values of a row are not listed: each phase makes those it needs again.
std::vector<Phase> phases_of(const FusedKernel& kernel) {
  std::vector<Phase> phases;
  std::vector<ir::TensorId> pending;  // what the current phase makes, through row values too
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    const FusedStage& stage = kernel.stages[s];
    const bool waits = depends_on(kernel, s, pending);
    if (kind_of(stage) == StageKind::row_value) {
      if (waits) pending.push_back(stage.output);
      continue;
    }
    if (phases.empty() || waits) {
      phases.emplace_back();
      pending.clear();
    }
    phases.back().push_back(s);
    pending.push_back(stage.output);
  }
  return phases;
}

class SplitPrinter {
 public:
  SplitPrinter(PrintContext& context, const ReducePlan& plan)
      : context_(context),
        kernel_(context.kernel),
        plan_(plan),
        passes_(context, plan),
        phases_(phases_of(kernel_)) {
    partial_offset_.assign(kernel_.stages.size(), -1);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      if (kind_of(kernel_.stages[s]) != StageKind::reduction) continue;
      partial_offset_[s] = scratch_;
      scratch_ += plan.rows * plan.split * 16;  // a value and, for argmax, a position
    }
  }

  Result<KernelCode> run() {
    ArgumentBlock block = argument_block(context_, true);
    block.declaration.insert(block.declaration.rfind("};"), "  int64_t first_task;\n");
    block.initializer.insert(block.initializer.size() - 1, ", 0");
    KernelCode code;
    target::CodeWriter out;
    for (size_t p = 0; p < phases_.size(); ++p) TRY(print_phase(out, block, p));
    const bool finish = needs_finish();
    if (finish) TRY(print_phase(out, block, phases_.size()));
    code.functions = block.declaration + out.take();
    code.launch = declare_arguments(block) + launch(block, finish);
    code.scratch_bytes = scratch_;
    code.helpers = context_.helpers;
    code.schedule = fmt::format(
        "Schedule: each of {} rows is cut into {} parts; {} passes over all parts{}; vectors of "
        "{}, "
        "{} accumulators.{}",
        plan_.rows, plan_.split, phases_.size(),
        plan_.row_at_a_time ? " of one row after the other" : "", plan_.lanes, plan_.unroll,
        notes_of(plan_));
    return code;
  }

 private:
  bool holds(size_t phase, StageKind kind) const {
    return std::any_of(phases_[phase].begin(), phases_[phase].end(),
                       [&](size_t s) { return kind_of(kernel_.stages[s]) == kind; });
  }

  // Whether the last phase leaves partial results that nobody has added up yet, or a value of the
  // row that reads what all of its parts wrote.
  bool needs_finish() const {
    std::vector<ir::TensorId> written;
    for (const size_t s : phases_.back()) written.push_back(kernel_.stages[s].output);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const bool value = kind_of(kernel_.stages[s]) == StageKind::row_value;
      if (value && depends_on(kernel_, s, written)) return true;
    }
    return holds(phases_.size() - 1, StageKind::reduction);
  }

  std::string function_name(size_t phase) const {
    return phase == phases_.size() ? kernel_.name + "_finish"
                                   : fmt::format("{}_pass{}", kernel_.name, phase + 1);
  }

  std::string launch(const ArgumentBlock& block, bool finish) const {
    target::CodeWriter out;
    const int64_t tasks = plan_.row_at_a_time ? plan_.split : plan_.rows * plan_.split;
    if (plan_.row_at_a_time) {
      out.open(fmt::format("for (int64_t row = 0; row < {}; ++row)", plan_.rows));
      out.line(fmt::format("{}.first_task = row * {};", block.variable, plan_.split));
    }
    for (size_t p = 0; p < phases_.size(); ++p) {
      out.lines(
          launch_tasks(context_, block, function_name(p), std::to_string(tasks), plan_.parallel));
    }
    if (plan_.row_at_a_time) out.close();
    if (finish) {
      if (plan_.row_at_a_time) out.line(fmt::format("{}.first_task = 0;", block.variable));
      out.lines(launch_tasks(context_, block, function_name(phases_.size()),
                             std::to_string(plan_.rows), false));
    }
    return out.take();
  }

  std::string partials(size_t s) const {
    const std::string_view type = target::compute_type(passes_.result_dtype(s));
    return fmt::format("(({}*)({}_scratch + {}))", type, kernel_.name, partial_offset_[s]);
  }

  std::string positions(size_t s) const {
    return fmt::format("((int64_t*)({}_scratch + {}))", kernel_.name,
                       partial_offset_[s] + plan_.rows * plan_.split * 8);
  }

  Result<void> print_phase(target::CodeWriter& out, const ArgumentBlock& block, size_t phase) {
    const bool finish = phase == phases_.size();
    out.open(fmt::format("static void {}([[maybe_unused]] int64_t task, void* argument)",
                         function_name(phase)));
    out.lines(block.unpack);
    out.line(fmt::format("constexpr int64_t kParts = {};", plan_.split));
    if (finish) {
      out.line("const int64_t row = task;");
    } else {
      out.line("task += arguments.first_task;");
      out.line("const int64_t row = task / kParts, part = task % kParts;");
    }
    passes_.print_row_axes(out);
    print_known_values(out, phase);
    if (!finish) {
      for (const size_t s : phases_[phase]) TRY(print_pass(out, s));
      if (holds(phase, StageKind::map) && plan_.streaming) out.line("__builtin_ia32_sfence();");
    }
    out.close();
    out.line("");
    return {};
  }

  // The row's values that earlier phases reduced, and those computed from them. The last phase
  // stores them.
  void print_known_values(target::CodeWriter& out, size_t phase) {
    const bool finish = phase == phases_.size();
    const bool last = finish || (phase + 1 == phases_.size() && !needs_finish());
    const size_t before = finish ? kernel_.stages.size() : phases_[phase].back();
    std::vector<ir::TensorId> unknown;  // made by this phase or later
    for (size_t p = phase; p < phases_.size(); ++p) {
      for (const size_t s : phases_[p]) unknown.push_back(kernel_.stages[s].output);
    }
    const size_t end = last ? kernel_.stages.size() : before;
    for (size_t s = 0; s < end; ++s) {
      const FusedStage& stage = kernel_.stages[s];
      if (kind_of(stage) == StageKind::map) continue;
      const bool own = std::find(unknown.begin(), unknown.end(), stage.output) != unknown.end();
      if (own || depends_on(kernel_, s, unknown)) {
        unknown.push_back(stage.output);
        continue;
      }
      if (kind_of(stage) == StageKind::reduction) print_combination(out, s);
      const bool store = last && !is_internal(kernel_, stage.output);
      print_value(out, s, store, finish);
    }
  }

  void print_value(target::CodeWriter& out, size_t s, bool store, bool finish) {
    if (kind_of(kernel_.stages[s]) == StageKind::reduction) {
      passes_.print_result(out, s, false);
    } else {
      passes_.print_row_value(out, s, false);
    }
    if (!store) return;
    const FusedStage& stage = kernel_.stages[s];
    std::vector<AxisBinding> axes;
    for (const std::string& name : axis_variables(context_, axes_of(kernel_, stage))) {
      axes.push_back({name, false});
    }
    VectorPrinter printer(context_, 1, axes);
    printer.store(
        stage.output, stage.store,
        {context_.tensor(stage.output).name + "_row", context_.tensor(stage.output).dtype, false});
    if (!finish) out.open("if (part == 0)");
    out.lines(printer.statements());
    if (!finish) out.close();
  }

  void print_combination(target::CodeWriter& out, size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const std::string name = passes_.result_name(s);
    const std::string at = partials(s) + "[row * kParts";
    out.line(fmt::format("{} {} = {}];", target::compute_type(passes_.result_dtype(s)), name, at));
    if (is_position(stage.reduce)) {
      const std::string place = positions(s) + "[row * kParts";
      out.line(fmt::format("int64_t {} = {}];", passes_.position_name(s), place));
      out.open("for (int64_t p = 1; p < kParts; ++p)");
      out.line(fmt::format("const auto value = {} + p];", at));
      out.open(fmt::format("if ({})", replaces(stage, "value", name, false)));
      out.line(fmt::format("{} = value;", name));
      out.line(fmt::format("{} = {} + p];", passes_.position_name(s), place));
      out.close();
      out.close();
      return;
    }
    out.open("for (int64_t p = 1; p < kParts; ++p)");
    out.line(fmt::format("{} = {};", name, combined(context_, stage, 1, name, at + " + p]")));
    out.close();
  }

  Result<void> print_pass(target::CodeWriter& out, size_t s) {
    const FusedStage& stage = kernel_.stages[s];
    const int64_t extent = stage.inner.front().extent;
    const bool lane = plan_.lane_axis[s] == static_cast<int>(kernel_.rows.size());
    int64_t chunk = (extent + plan_.split - 1) / plan_.split;
    if (lane) chunk = (chunk + 63) / 64 * 64;
    if (!stage.origin.empty()) out.line("// " + stage.origin.substr(0, 90));
    out.open("");
    out.line(fmt::format("constexpr int64_t kExtent = {}, kChunk = {};", extent, chunk));
    out.line("const int64_t from = part * kChunk < kExtent ? part * kChunk : kExtent;");
    out.line("const int64_t to = from + kChunk < kExtent ? from + kChunk : kExtent;");
    const PassRange range{"from", "to"};
    if (kind_of(stage) == StageKind::map) {
      TRY(passes_.print_map(out, s, range));
    } else {
      passes_.print_reduction(out, s, range);
      out.line(fmt::format("{}[task] = {};", partials(s), passes_.result_name(s)));
      if (is_position(stage.reduce)) {
        out.line(fmt::format("{}[task] = {};", positions(s), passes_.position_name(s)));
      }
    }
    out.close();
    return {};
  }

  PrintContext& context_;
  const FusedKernel& kernel_;
  const ReducePlan& plan_;
  RowPasses passes_;
  std::vector<Phase> phases_;
  std::vector<int64_t> partial_offset_;  // one a stage, bytes
  int64_t scratch_ = 0;
};

}  // namespace

Result<KernelCode> print_split(PrintContext& context, const ReducePlan& plan) {
  return SplitPrinter(context, plan).run();
}

}  // namespace ke::x86
