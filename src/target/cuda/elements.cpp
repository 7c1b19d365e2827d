// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/elements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "target/access.hpp"

namespace ke::cuda {
namespace {

using ir::Expr;
using ir::ExprPtr;
using Kind = ir::Expr::Kind;

constexpr int64_t kWidest = 16, kWidestBytes = 32;

// The loads that happen whatever is chosen; `visit` gets each.
template <class Visitor>
void walk_certain_loads(const ExprPtr& expr, const Visitor& visit) {
  if (expr->kind == Kind::load) visit(expr);
  const bool lazy = expr->kind == Kind::select && (target::contains_load(*expr->operands[1]) ||
                                                   target::contains_load(*expr->operands[2]));
  for (size_t i = 0; i < (lazy ? 1 : expr->operands.size()); ++i) {
    walk_certain_loads(expr->operands[i], visit);
  }
}

bool is_contiguous(const target::Address& address, int axis) {
  return address.coefficient_of_axis(axis) == 1 && !address.depends_outside_affine(axis);
}

// The power of two up to `most` that divides everything of the address but the lane axis.
int64_t alignment_of(const target::Address& address, int lane_axis, int64_t most) {
  const auto divides = [&](int64_t width) {
    return address.base % width == 0 &&
           std::all_of(address.terms.begin(), address.terms.end(), [&](const auto& term) {
             const bool lane = term.factor->kind == Kind::axis && term.factor->axis == lane_axis;
             return lane || term.coefficient % width == 0;
           });
  };
  while (most > 1 && !divides(most)) most /= 2;
  return most;
}

}  // namespace

bool is_wide(const ir::Tensor& tensor, const std::vector<ExprPtr>& indices, int lane_axis,
             int64_t width) {
  const target::Address address = target::address_of(tensor, indices);
  return width > 1 && is_contiguous(address, lane_axis) &&
         alignment_of(address, lane_axis, width) == width;
}

std::vector<ExprPtr> certain_loads(const ExprPtr& expr) {
  std::vector<ExprPtr> loads;
  walk_certain_loads(expr, [&](const ExprPtr& load) { loads.push_back(load); });
  return loads;
}

int64_t widest_group(const ir::Program& program, const std::vector<ir::FusedStage>& stages,
                     int lane_axis) {
  int64_t width = kWidest;
  bool any = false;
  const auto limit = [&](ir::TensorId id, const std::vector<ExprPtr>& indices) {
    const ir::Tensor& tensor = program.tensor(id);
    const target::Address address = target::address_of(tensor, indices);
    if (!is_contiguous(address, lane_axis)) return;
    any = true;
    width = std::min(width, kWidestBytes / bytes_of(tensor.dtype));
    width = alignment_of(address, lane_axis, width);
  };
  for (const ir::FusedStage& stage : stages) {
    walk_certain_loads(stage.body,
                       [&](const ExprPtr& load) { limit(load->tensor, load->operands); });
    limit(stage.output, stage.store);
  }
  return any ? width : 1;
}

bool is_early(const PrintContext& context, const Expr& load, int lane_axis, int64_t width) {
  for (const ir::FusedStage& stage : context.kernel.stages) {
    if (stage.output == load.tensor) return false;
  }
  const auto indirect = [](const ExprPtr& index) { return target::contains_load(*index); };
  if (std::any_of(load.operands.begin(), load.operands.end(), indirect)) return false;
  return width == 1 || is_wide(context.tensor(load.tensor), load.operands, lane_axis, width);
}

void declare_array(const PrintContext& context, target::CodeWriter& out, const LoadArray& array,
                   int64_t turns) {
  out.line(fmt::format("alignas(16) {} {}[{}][{}];",
                       target::storage_type(context.tensor(array.load->tensor).dtype), array.name,
                       turns, array.width));
}

void fill_array(PrintContext& context, target::CodeWriter& out, const LoadArray& array,
                std::vector<AxisBinding> axes, int lane_axis) {
  if (lane_axis >= 0) {
    AxisBinding& lane = axes[static_cast<size_t>(lane_axis)];
    lane.variable = ElementLoop::first_variable(lane, array.width);
  }
  ScalarPrinter printer(context, out, std::move(axes));
  const std::string place = fmt::format("{} + {}", context.pointer(array.load->tensor),
                                        printer.offset(array.load->tensor, array.load->operands));
  out.line(fmt::format("ke_copy<{}>({}[turnIndex], {});", array.width, array.name, place));
}

int64_t words_of(const PrintContext& context, const Expr& load, int64_t width) {
  return width * std::max<int64_t>(bytes_of(context.tensor(load.tensor).dtype), 4) / 4;
}

ElementLoop::ElementLoop(PrintContext& context, target::CodeWriter& out,
                         std::vector<AxisBinding> axes, int lane_axis, int64_t width)
    : context_(context), out_(out), axes_(std::move(axes)), lane_axis_(lane_axis), width_(width) {
  std::vector<AxisBinding> first = axes_;
  if (width_ > 1) {
    AxisBinding& lane = first[static_cast<size_t>(lane_axis)];
    lane.variable = first_variable(lane, width_);
  }
  first_ = std::make_unique<ScalarPrinter>(context_, out_, std::move(first));
  element_ = std::make_unique<ScalarPrinter>(context_, out_, axes_);
}

void ElementLoop::hold(ir::TensorId tensor, const std::string& text) {
  held_.push_back(tensor);
  first_->hold(tensor, text);
  element_->hold(tensor, text);
}

void ElementLoop::hold(const LoadArray& array) {
  loaded_.push_back(array.load);
  std::string element = "0";
  if (width_ > 1) {
    const AxisBinding& lane = axes_[static_cast<size_t>(lane_axis_)];
    element = fmt::format("{} - {}", lane.variable, first_variable(lane, width_));
  }
  element_->hold(HeldLoad{array.load, fmt::format("{}[turnIndex][{}]", array.name, element)});
}

std::string ElementLoop::declare(ir::TensorId tensor) {
  const std::string buffer = context_.fresh(context_.tensor(tensor).name + "Wide");
  out_.line(fmt::format("alignas(16) {} {}[{}];",
                        target::storage_type(context_.tensor(tensor).dtype), buffer, width_));
  return buffer;
}

void ElementLoop::load(const ExprPtr& expr) {
  if (!is_wide(context_.tensor(expr->tensor), expr->operands, lane_axis_, width_)) return;
  bool held = false;  // it, or an index of it, is no load from memory
  walk(expr, [&](const Expr& part) {
    held = held || (part.kind == Kind::load &&
                    std::find(held_.begin(), held_.end(), part.tensor) != held_.end());
  });
  if (held) return;
  for (const ExprPtr& known : loaded_) {
    if (same(*known, *expr)) return;
  }
  loaded_.push_back(expr);
  const std::string place = fmt::format("{} + {}", context_.pointer(expr->tensor),
                                        first_->offset(expr->tensor, expr->operands));
  const std::string buffer = declare(expr->tensor);
  out_.line(fmt::format("ke_copy<{}>({}, {});", width_, buffer, place));
  const size_t lane = static_cast<size_t>(lane_axis_);
  element_->hold(HeldLoad{expr, fmt::format("{}[{} - {}]", buffer, axes_[lane].variable,
                                            first_variable(axes_[lane], width_))});
}

void ElementLoop::prepare(const ExprPtr& body) {
  if (width_ > 1) walk_certain_loads(body, [&](const ExprPtr& expr) { load(expr); });
}

void ElementLoop::prepare_store(ir::TensorId tensor, const std::vector<ExprPtr>& indices) {
  if (!is_wide(context_.tensor(tensor), indices, lane_axis_, width_)) return;
  stores_.push_back({tensor, indices, declare(tensor)});
}

void ElementLoop::open() {
  if (width_ == 1) return;
  const AxisBinding& lane = axes_[static_cast<size_t>(lane_axis_)];
  const std::string first = first_variable(lane, width_);
  const std::string_view type = lane.extent <= INT32_MAX ? "int" : "int64_t";
  out_.line("#pragma unroll");
  out_.open(fmt::format("for ({0} {1} = {2}; {1} < {2} + {3}; ++{1})", type, lane.variable, first,
                        width_));
}

void ElementLoop::store(ir::TensorId tensor, const std::vector<ExprPtr>& indices,
                        const Value& value) {
  for (const WideStore& wide : stores_) {
    if (wide.tensor != tensor) continue;
    const AxisBinding& lane = axes_[static_cast<size_t>(lane_axis_)];
    const std::string element = element_->stored(value, context_.tensor(tensor).dtype);
    out_.line(fmt::format("{}[{} - {}] = {};", wide.buffer, lane.variable,
                          first_variable(lane, width_), element));
    return;
  }
  element_->store(tensor, indices, value);
}

void ElementLoop::close() {
  if (width_ > 1) out_.close();
  for (const WideStore& wide : stores_) {
    const std::string place = fmt::format("{} + {}", context_.pointer(wide.tensor),
                                          first_->offset(wide.tensor, wide.indices));
    out_.line(fmt::format("ke_copy<{}>({}, {});", width_, place, wide.buffer));
  }
}

}  // namespace ke::cuda
