// SPDX-License-Identifier: Apache-2.0
#include "target/x86/vector_printer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {
namespace {

using ir::DType;
using ir::Expr;
using ir::ExprPtr;
using Kind = ir::Expr::Kind;

constexpr size_t kLongestInline = 56;  // characters of a subexpression that gets no name

bool is_atom(std::string_view text) { return text.find_first_of(" ([{") == std::string_view::npos; }

// "(a + b)" as "a + b", when the first parenthesis closes at the very end.
std::string_view without_parentheses(std::string_view text) {
  if (text.size() < 2 || text.front() != '(') return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text;
  }
  return text.substr(1, text.size() - 2);
}

std::string_view stem_of(const Expr& expr, const PrintContext& context) {
  switch (expr.kind) {
    case Kind::load:
      return context.tensor(expr.tensor).name;
    case Kind::unary:
      return enum_name(expr.unary);
    case Kind::binary:
      return enum_name(expr.binary);
    case Kind::select:
      return "chosen";
    case Kind::cast:
      return "cast";
    case Kind::constant:
    case Kind::axis:
      break;
  }
  return "t";
}

}  // namespace

VectorPrinter::VectorPrinter(PrintContext& context, int lanes, std::vector<AxisBinding> axes)
    : context_(context), lanes_(lanes), axes_(std::move(axes)), frames_(1) {
  for (size_t k = 0; k < axes_.size(); ++k) {
    if (!axes_[k].lane) continue;
    KE_ASSERT(lane_axis_ < 0 && lanes_ > 1);
    lane_axis_ = static_cast<int>(k);
  }
}

void VectorPrinter::hold(ir::TensorId tensor, HeldValue value) { held_[tensor] = std::move(value); }

Value VectorPrinter::print(const ExprPtr& expr) {
  kept_.push_back(expr);
  count_uses(expr);
  Value value = emit(expr);
  if (!is_atom(value.text)) value = named(value, stem_of(*expr, context_));
  frames_.back().known[expr.get()] = value;
  return value;
}

Value VectorPrinter::print_cast(const Value& value, DType dtype) {
  const Value result = cast_value(context_, value, dtype, lanes_);
  return is_atom(result.text) ? result : named(result, "cast");
}

Value VectorPrinter::as_vector(const Value& value) {
  const Value result = splat_value(context_, value, lanes_);
  return is_atom(result.text) ? result : named(result, "all");
}

std::string VectorPrinter::address(ir::TensorId tensor, const std::vector<ExprPtr>& indices) {
  const std::string offset = offset_text(target::address_of(context_.tensor(tensor), indices));
  return offset == "0" ? context_.pointer(tensor)
                       : fmt::format("{} + {}", context_.pointer(tensor), offset);
}

void VectorPrinter::store(ir::TensorId tensor, const std::vector<ExprPtr>& indices,
                          const Value& value, StoreKind kind) {
  const DType dtype = context_.tensor(tensor).dtype;
  for (const ExprPtr& index : indices) kept_.push_back(index);
  const target::Address address = target::address_of(context_.tensor(tensor), indices);
  const bool half = is_half(dtype);
  Value cast = half ? value : print_cast(value, dtype);
  if (half && is_half(value.dtype) == false) {
    cast = cast_value(context_, value, DType::float32, lanes_);
  }
  const std::string type = memory_type(dtype, 1);
  if (lane_axis_ < 0) {
    const std::string offset = offset_text(address);
    if (half) context_.helpers.insert("store:" + type);
    statements_.line(
        half ? fmt::format("store_{}({} + {}, {});", type, context_.pointer(tensor), offset,
                           cast.text)
             : fmt::format("{}[{}] = {};", context_.pointer(tensor), offset, cast.text));
    return;
  }
  const std::string vector = as_vector(cast).text;
  const int64_t stride = address.coefficient_of_axis(lane_axis_);
  const bool simple = !address.depends_outside_affine(lane_axis_);
  if (simple && stride == 1) {
    const std::string wide = memory_type(dtype, lanes_);
    const std::string_view verb = kind == StoreKind::streaming && !half ? "stream" : "store";
    context_.helpers.insert(fmt::format("{}:{}", verb, wide));
    statements_.line(
        fmt::format("{}_{}({}, {});", verb, wide, this->address(tensor, indices), vector));
    return;
  }
  statements_.open(fmt::format("for (int lane = 0; lane < {}; ++lane)", lanes_));
  scalar_mode_ = true;
  frames_.push_back({});
  const std::string offset = offset_text(address);
  const std::string element =
      fmt::format("{}[lane]{}", vector, dtype == DType::boolean ? " != 0" : "");
  if (half) context_.helpers.insert("store:" + type);
  statements_.line(
      half ? fmt::format("store_{}({} + {}, {});", type, context_.pointer(tensor), offset, element)
           : fmt::format("{}[{}] = {};", context_.pointer(tensor), offset, element));
  frames_.pop_back();
  scalar_mode_ = false;
  statements_.close();
}

// --- Walking ------------------------------------------------------------------------------------

void VectorPrinter::count_uses(const ExprPtr& expr) {
  if (uses_[expr.get()]++ > 0) return;
  for (const ExprPtr& operand : expr->operands) count_uses(operand);
}

bool VectorPrinter::varies(const Expr& expr) {
  if (lane_axis_ < 0) return false;
  const auto found = varies_.find(&expr);
  if (found != varies_.end()) return found->second;
  bool result = expr.kind == Kind::axis && expr.axis == lane_axis_;
  if (expr.kind == Kind::load) {
    const auto held = held_.find(expr.tensor);
    if (held != held_.end()) return varies_[&expr] = held->second.vector;
  }
  for (const ExprPtr& operand : expr.operands) result = varies(*operand) || result;
  return varies_[&expr] = result;
}

// What is known of an expression: by identity, and for loads from memory by structure too.
const Value* VectorPrinter::find(const Expr* expr) const {
  for (size_t k = frames_.size(); k-- > 0;) {
    const auto found = frames_[k].known.find(expr);
    if (found != frames_[k].known.end()) return &found->second;
  }
  if (expr->kind != Kind::load || held_.contains(expr->tensor)) return nullptr;
  for (size_t k = frames_.size(); k-- > 0;) {
    for (const auto& [other, value] : frames_[k].known) {
      if (other->kind == Kind::load && same(*other, *expr)) return &value;
    }
  }
  return nullptr;
}

// Whether printing an expression would load from memory something that is not at hand.
bool VectorPrinter::loads_anew(const Expr& expr) const {
  if (find(&expr) != nullptr) return false;
  if (expr.kind == Kind::load) return !held_.contains(expr.tensor);
  return std::any_of(expr.operands.begin(), expr.operands.end(),
                     [&](const ExprPtr& operand) { return loads_anew(*operand); });
}

// A vector seen from a loop over single lanes.
Value VectorPrinter::in_scalar_mode(const Value& value) const {
  if (!scalar_mode_ || !value.vector) return value;
  const std::string element = value.text + "[lane]";
  if (value.dtype == DType::boolean) return {"(" + element + " != 0)", value.dtype, false};
  return {element, value.dtype, false};
}

Value VectorPrinter::named(const Value& value, std::string_view stem) {
  for (size_t k = frames_.size(); k-- > 0;) {
    const auto found = frames_[k].names.find(value.text);
    if (found != frames_[k].names.end()) return {found->second, value.dtype, value.vector};
  }
  const std::string name = context_.fresh(std::string(stem) + "_");
  const std::string type = value.vector ? vector_type(context_, value.dtype, lanes_)
                                        : std::string(target::compute_type(value.dtype));
  sink_->line(fmt::format("const {} {} = {};", type, name, without_parentheses(value.text)));
  frames_.back().names[value.text] = name;
  return {name, value.dtype, value.vector};
}

Value VectorPrinter::emit(const ExprPtr& expr) {
  if (const Value* known = find(expr.get())) return in_scalar_mode(*known);
  const bool vector = !scalar_mode_ && varies(*expr);
  target::CodeWriter* const outer = sink_;
  const bool hoist = lane_axis_ >= 0 && !vector && frames_.size() == 1;
  if (hoist) sink_ = &invariant_;
  Value value = make(expr, vector);
  const bool inside =
      (lane_axis_ >= 0 && !vector && !scalar_mode_) || (vector && expr->kind == Kind::load);
  const bool shared = uses_[expr.get()] > 1 || inside || value.text.size() > kLongestInline;
  const bool trivial = is_atom(value.text) || expr->kind == Kind::axis;
  if (shared && !trivial) value = named(value, stem_of(*expr, context_));
  sink_ = outer;
  frames_.back().known[expr.get()] = value;
  return value;
}

Value VectorPrinter::make(const ExprPtr& expr, bool vector) {
  const int lanes = vector ? lanes_ : 1;
  switch (expr->kind) {
    case Kind::constant:
      return {target::literal(expr->dtype, *expr), expr->dtype, false};
    case Kind::axis:
      return make_axis(expr->axis, vector);
    case Kind::load:
      return make_load(*expr, vector);
    case Kind::unary: {
      Value a = emit(expr->operands[0]);
      const bool repeats = !is_floating(a.dtype) || expr->unary == ir::UnaryOp::is_nan;
      if (repeats && !is_atom(a.text)) a = named(a, "t");
      Value value = unary_value(context_, expr->unary, a, lanes);
      value.dtype = expr->dtype;
      return value;
    }
    case Kind::binary: {
      const bool repeats = expr->binary == ir::BinaryOp::maximum ||
                           expr->binary == ir::BinaryOp::minimum ||
                           expr->binary == ir::BinaryOp::pow;
      Value a = emit(expr->operands[0]);
      if (repeats && !is_atom(a.text)) a = named(a, "t");
      Value b = emit(expr->operands[1]);
      if (meets_row_value(*expr, 0)) a = rounded(a);
      if (meets_row_value(*expr, 1)) b = rounded(b);
      auto value = binary_value(context_, expr->binary, a, b, lanes);
      if (!value) return make_lane_loop(expr);
      value->dtype = expr->dtype;
      return *value;
    }
    case Kind::select:
      return make_select(*expr, vector);
    case Kind::cast:
      return cast_value(context_, emit(expr->operands[0]), expr->dtype, lanes);
  }
  KE_ASSERT(false);
}

// Whether operand k is a product that is added to a value of the row or subtracted from it.
bool VectorPrinter::meets_row_value(const Expr& expr, size_t k) const {
  const bool adds = expr.binary == ir::BinaryOp::add || expr.binary == ir::BinaryOp::sub;
  const Expr& other = *expr.operands[1 - k];
  return adds && is_floating(expr.dtype) && expr.operands[k]->kind == Kind::binary &&
         expr.operands[k]->binary == ir::BinaryOp::mul && other.kind == Kind::load &&
         held_.contains(other.tensor);
}

// The row's value was made of rounded products: where all of them are equal the difference is zero,
// which a fused multiplication would miss by what it does not round.
Value VectorPrinter::rounded(const Value& value) {
  if (!is_floating(value.dtype)) return value;
  return {fmt::format("__builtin_assoc_barrier({})", without_parentheses(value.text)), value.dtype,
          value.vector};
}

// --- Axes and addresses -------------------------------------------------------------------------

std::string VectorPrinter::axis_text(int axis) const {
  const AxisBinding& binding = axes_[static_cast<size_t>(axis)];
  if (!scalar_mode_ || axis != lane_axis_) return binding.variable;
  return fmt::format("({} + lane)", binding.variable);
}

Value VectorPrinter::make_axis(int axis, bool vector) {
  if (!vector) return {axis_text(axis), DType::int64, false};
  const std::string type = vector_type(context_, DType::int64, lanes_);
  context_.helpers.insert("iota:" + type);
  return {fmt::format("({} + lane_of_{})", axis_text(axis), type), DType::int64, true};
}

std::string VectorPrinter::offset_text(const target::Address& address) {
  std::string text;
  const auto append = [&](int64_t coefficient, std::string_view factor) {
    const bool negative = coefficient < 0;
    const int64_t size = negative ? -coefficient : coefficient;
    text += text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    if (factor.empty()) {
      text += std::to_string(size);
    } else if (size == 1) {
      text += factor;
    } else {
      text += fmt::format("{} * {}", factor, size);
    }
  };
  for (const target::Address::Term& term : address.terms) {
    kept_.push_back(term.factor);
    if (term.factor->kind == Kind::axis) {
      append(term.coefficient, axis_text(term.factor->axis));
    } else {
      const Value factor = emit(term.factor);
      KE_ASSERT(!factor.vector);
      append(term.coefficient, factor.text);
    }
  }
  if (address.base != 0 || text.empty()) append(address.base, "");
  return text;
}

// --- Loads --------------------------------------------------------------------------------------

Value VectorPrinter::make_load(const Expr& expr, bool vector) {
  const auto held = held_.find(expr.tensor);
  if (held != held_.end()) {
    return in_scalar_mode({held->second.variable, expr.dtype, held->second.vector});
  }
  const target::Address address = target::address_of(context_.tensor(expr.tensor), expr.operands);
  if (vector) return make_vector_load(expr, address);
  const std::string& pointer = context_.pointer(expr.tensor);
  const std::string offset = offset_text(address);
  std::string text = fmt::format("{}[{}]", pointer, offset);
  if (is_half(expr.dtype)) {
    const std::string type = memory_type(expr.dtype, 1);
    context_.helpers.insert("load:" + type);
    text = fmt::format("load_{}({} + {})", type, pointer, offset);
  }
  if (!scalar_mode_ && !mask().empty()) {  // one element for all lanes, if any lane wants it
    const std::string masks = vector_type(context_, DType::boolean, lanes_);
    context_.helpers.insert("any:" + masks);
    text = fmt::format("(any_of({}) ? {} : 0)", mask(), text);
  }
  return {text, expr.dtype, false};
}

Value VectorPrinter::make_vector_load(const Expr& expr, const target::Address& address) {
  if (address.depends_outside_affine(lane_axis_)) {
    // An owner for the node is not at hand here; a copy prints the same text.
    return make_lane_loop(std::make_shared<const Expr>(expr));
  }
  const int64_t stride = address.coefficient_of_axis(lane_axis_);
  const std::string type = memory_type(expr.dtype, lanes_);
  const std::string offset = offset_text(address);
  const std::string place = fmt::format("{} + {}", context_.pointer(expr.tensor), offset);
  vector_type(context_, expr.dtype, lanes_);
  if (!mask().empty()) {
    context_.helpers.insert("load_if:" + type);
    return {fmt::format("load_if_{}({}, {}, {})", type, place, stride, mask()), expr.dtype, true};
  }
  if (stride == 1) {
    context_.helpers.insert("load:" + type);
    return {fmt::format("load_{}({})", type, place), expr.dtype, true};
  }
  context_.helpers.insert("gather:" + type);
  return {fmt::format("gather_{}({}, {})", type, place, stride), expr.dtype, true};
}

// --- Choices ------------------------------------------------------------------------------------

Value VectorPrinter::make_select(const Expr& expr, bool vector) {
  Value condition = emit(expr.operands[0]);
  const Expr &a_side = *expr.operands[1], &b_side = *expr.operands[2];
  const bool lazy = condition.vector
                        ? loads_anew(a_side) || loads_anew(b_side)
                        : target::contains_load(a_side) || target::contains_load(b_side);
  if (lazy) {
    if (!is_atom(condition.text)) condition = named(condition, "inside");
    if (condition.vector) return make_masked_select(expr, condition);
    return make_branches(expr, condition, vector);
  }
  const Value a = emit(expr.operands[1]), b = emit(expr.operands[2]);
  Value value = select_value(context_, condition, a, b, vector ? lanes_ : 1);
  value.dtype = expr.dtype;
  return value;
}

// if (condition) … else …, for a condition that all lanes share.
Value VectorPrinter::make_branches(const Expr& expr, const Value& condition, bool vector) {
  const std::string name = context_.fresh("chosen_");
  const std::string type = vector ? vector_type(context_, expr.dtype, lanes_)
                                  : std::string(target::compute_type(expr.dtype));
  sink_->line(fmt::format("{} {};", type, name));
  for (int side = 0; side < 2; ++side) {
    if (side == 0) {
      sink_->open(fmt::format("if ({})", condition.text));
    } else {
      sink_->open("else");
    }
    Frame frame;
    frame.mask = mask();
    frames_.push_back(std::move(frame));
    Value value = emit(expr.operands[static_cast<size_t>(side) + 1]);
    if (vector) value = splat_value(context_, value, lanes_);
    sink_->line(fmt::format("{} = {};", name, value.text));
    frames_.pop_back();
    sink_->close();
  }
  return {name, expr.dtype, vector};
}

// Both sides are computed; each loads only the lanes that chose it.
Value VectorPrinter::make_masked_select(const Expr& expr, const Value& condition) {
  Value sides[2];
  for (int side = 0; side < 2; ++side) {
    std::string chosen = side == 0 ? condition.text : "~" + condition.text;
    if (!mask().empty()) chosen = fmt::format("({} & {})", mask(), chosen);
    Frame frame;
    frame.mask = is_atom(chosen) ? chosen : named({chosen, DType::boolean, true}, "mask").text;
    frames_.push_back(std::move(frame));
    sides[side] = emit(expr.operands[static_cast<size_t>(side) + 1]);
    frames_.pop_back();
  }
  Value value = select_value(context_, condition, sides[0], sides[1], lanes_);
  value.dtype = expr.dtype;
  return value;
}

// One lane after the other, for what has no vector form.
Value VectorPrinter::make_lane_loop(const ExprPtr& expr) {
  KE_ASSERT(!scalar_mode_);
  kept_.push_back(expr);
  const std::string name = context_.fresh("lanes_");
  const std::string type = vector_type(context_, expr->dtype, lanes_);
  sink_->line(fmt::format("{0} {1} = {0}{{}};", type, name));
  sink_->open(fmt::format("for (int lane = 0; lane < {}; ++lane)", lanes_));
  if (!mask().empty()) sink_->line(fmt::format("if (!{}[lane]) continue;", mask()));
  scalar_mode_ = true;
  frames_.push_back({});
  const Value value = make(expr, false);
  const std::string_view sign = expr->dtype == DType::boolean ? "-(int32_t)" : "";
  sink_->line(fmt::format("{}[lane] = {}{};", name, sign, value.text));
  frames_.pop_back();
  scalar_mode_ = false;
  sink_->close();
  return {name, expr->dtype, true};
}

}  // namespace ke::x86
