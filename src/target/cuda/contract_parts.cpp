// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/contract_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ke::cuda {

using target::CodeWriter;
using target::ContractShape;

std::vector<AxisBinding> contract_axes(const PrintContext& context, const ContractShape& shape) {
  std::vector<ir::Axis> axes = shape.batch;
  axes.push_back({"m", shape.m});
  axes.push_back({"n", shape.n});
  axes.push_back({"k", shape.k});
  const std::vector<std::string> names = axis_variables(context, axes);
  std::vector<AxisBinding> bindings;
  for (size_t i = 0; i < axes.size(); ++i) bindings.push_back({names[i], axes[i].extent});
  return bindings;
}

Result<void> expect_int_extents(const PrintContext& context, const ContractShape& shape) {
  constexpr int64_t most = INT32_MAX / 2;
  if (shape.m <= most && shape.n <= most && shape.k <= most) return {};
  return Error{Errc::unavailable, fmt::format("kernel {} has more than {} rows, columns or terms",
                                              context.kernel.name, most)};
}

void print_batch(CodeWriter& out, const ContractShape& shape, const std::vector<AxisBinding>& axes,
                 const std::string& flat) {
  int64_t below = shape.batches();
  for (size_t axis = 0; axis < shape.batch.size(); ++axis) {
    below /= std::max<int64_t>(axes[axis].extent, 1);
    const std::string text = below == 1 ? flat : fmt::format("{} / {}", flat, below);
    out.line(fmt::format("const int {} = {} % {};", axes[axis].variable, text, axes[axis].extent));
  }
}

int64_t widest_load(const ir::Program& program, const ir::ExprPtr& value, int lane_axis) {
  int64_t width = 1;
  walk(value, [&](const ir::Expr& expr) {
    if (expr.kind != ir::Expr::Kind::load) return;
    for (const int64_t wider : {2, 4}) {
      if (is_wide(program.tensor(expr.tensor), expr.operands, lane_axis, wider)) {
        width = std::max(width, wider);
      }
    }
  });
  return width;
}

bool is_written(const PrintContext& context, ir::TensorId id) {
  const std::vector<ir::TensorId>& writes = context.kernel.writes;
  return std::find(writes.begin(), writes.end(), id) != writes.end();
}

void print_epilogue(PrintContext& context, CodeWriter& out, const ContractShape& shape,
                    const std::vector<AxisBinding>& axes, const SumText& sum) {
  ElementLoop loop(context, out, axes, shape.n_axis(), sum.width);
  for (const ir::FusedStage& stage : shape.stages) loop.hold(stage.output, "");
  for (size_t s = 1; s < shape.stages.size(); ++s) loop.prepare(shape.stages[s].body);
  for (const ir::FusedStage& stage : shape.stages) {
    if (is_written(context, stage.output)) loop.prepare_store(stage.output, stage.store);
  }
  loop.open();
  ScalarPrinter& element = loop.element();
  for (size_t s = 0; s < shape.stages.size(); ++s) {
    const ir::FusedStage& stage = shape.stages[s];
    const Value computed = s == 0 ? Value{sum.text, shape.dtype} : element.print(stage.body);
    const Value value = element.print_cast(computed, context.tensor(stage.output).dtype);
    if (is_written(context, stage.output)) loop.store(stage.output, stage.store, value);
    element.hold(stage.output, value.text);
  }
  loop.close();
}

}  // namespace ke::cuda
