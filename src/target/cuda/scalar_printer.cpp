// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/scalar_printer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.hpp"
#include "target/cuda/scalar_ops.hpp"

namespace ke::cuda {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprPtr;
using Kind = ir::Expr::Kind;

constexpr size_t kLongestInline = 64;  // characters of a subexpression that gets no name

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

// The ends of what an operation on two ranges can give; none when 64 bits may not hold it.
std::optional<Range> range_of_binary(BinaryOp op, const Range& a, const Range& b) {
  __extension__ typedef __int128 Wide;
  std::array<Wide, 4> ends{};
  const std::array<std::pair<int64_t, int64_t>, 4> corners{
      {{a.low, b.low}, {a.low, b.high}, {a.high, b.low}, {a.high, b.high}}};
  for (size_t i = 0; i < corners.size(); ++i) {
    const Wide x = corners[i].first, y = corners[i].second;
    if (op == BinaryOp::add) ends[i] = x + y;
    if (op == BinaryOp::sub) ends[i] = x - y;
    if (op == BinaryOp::mul) ends[i] = x * y;
    if (op == BinaryOp::maximum) ends[i] = std::max(x, y);
    if (op == BinaryOp::minimum) ends[i] = std::min(x, y);
  }
  const Wide low = *std::min_element(ends.begin(), ends.end());
  const Wide high = *std::max_element(ends.begin(), ends.end());
  if (low < INT64_MIN || high > INT64_MAX) return std::nullopt;
  return Range{static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

bool is_plain_division(BinaryOp op) {
  return op == BinaryOp::floor_div || op == BinaryOp::mod || op == BinaryOp::div ||
         op == BinaryOp::fmod;
}

std::optional<Range> range_of_division(const Expr& expr, const std::vector<AxisBinding>& axes) {
  const Expr& divisor = *expr.operands[1];
  if (divisor.kind != Kind::constant || divisor.int_value <= 0) return std::nullopt;
  const std::optional<Range> a = range_of(*expr.operands[0], axes);
  if (!a || a->low < 0) return std::nullopt;
  const int64_t by = divisor.int_value;
  if (expr.binary == BinaryOp::floor_div || expr.binary == BinaryOp::div) {
    return Range{a->low / by, a->high / by};
  }
  return Range{0, std::min(a->high, by - 1)};
}

}  // namespace

std::optional<Range> range_of(const Expr& expr, const std::vector<AxisBinding>& axes) {
  if (expr.dtype != DType::int64) return std::nullopt;
  if (expr.kind == Kind::constant) return Range{expr.int_value, expr.int_value};
  if (expr.kind == Kind::axis) {
    const int64_t extent = axes[static_cast<size_t>(expr.axis)].extent;
    return Range{0, std::max<int64_t>(extent - 1, 0)};
  }
  if (expr.kind != Kind::binary) return std::nullopt;
  if (is_plain_division(expr.binary)) return range_of_division(expr, axes);
  const bool known = expr.binary <= BinaryOp::mul || expr.binary == BinaryOp::maximum ||
                     expr.binary == BinaryOp::minimum;
  if (!known) return std::nullopt;
  const std::optional<Range> a = range_of(*expr.operands[0], axes);
  const std::optional<Range> b = range_of(*expr.operands[1], axes);
  return a && b ? range_of_binary(expr.binary, *a, *b) : std::nullopt;
}

std::string type_of(const Value& value) {
  return value.narrow ? "int" : std::string(target::compute_type(value.dtype));
}

std::string float_literal(DType dtype, double value) {
  const std::string_view type = dtype == DType::float64 ? "double" : "float";
  if (std::isnan(value)) return fmt::format("ke_nan_{}()", type);
  if (dtype != DType::float64) value = static_cast<double>(static_cast<float>(value));
  if (!std::isinf(value)) return target::float_literal(dtype, value);
  return fmt::format("{}ke_infinity_{}()", value < 0 ? "-" : "", type);
}

std::string literal(DType dtype, const Expr& constant) {
  if (is_floating(dtype)) return float_literal(dtype, constant.float_value);
  return target::literal(dtype, constant);
}

ScalarPrinter::ScalarPrinter(PrintContext& context, target::CodeWriter& out,
                             std::vector<AxisBinding> axes)
    : context_(context), out_(out), axes_(std::move(axes)), frames_(1) {}

Value ScalarPrinter::print(const ExprPtr& expr) {
  kept_.push_back(expr);
  count_uses(expr);
  Value value = emit(expr);
  if (!is_atom(value.text)) value = named(value, stem_of(*expr, context_));
  frames_.back().known[expr.get()] = value;
  return value;
}

Value ScalarPrinter::print_cast(const Value& value, DType dtype) {
  const Value result = cast_value(value, dtype);
  return is_atom(result.text) ? result : named(result, "cast");
}

std::string ScalarPrinter::stored(const Value& value, DType dtype) {
  if (!is_half(dtype)) return print_cast(value, dtype).text;
  const std::string_view type = dtype == DType::float16 ? "f16" : "bf16";
  return fmt::format("ke_bits_{}((float){})", type, value.text);
}

void ScalarPrinter::store(ir::TensorId tensor, const std::vector<ExprPtr>& indices,
                          const Value& value) {
  const std::string element = stored(value, context_.tensor(tensor).dtype);
  out_.line(
      fmt::format("{}[{}] = {};", context_.pointer(tensor), offset(tensor, indices), element));
}

void ScalarPrinter::count_uses(const ExprPtr& expr) {
  if (uses_[expr.get()]++ > 0) return;
  for (const ExprPtr& operand : expr->operands) count_uses(operand);
}

// What is known of an expression: by identity, and for loads from memory by structure too.
const Value* ScalarPrinter::find(const Expr* expr) const {
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

Value ScalarPrinter::named(const Value& value, std::string_view stem) {
  for (size_t k = frames_.size(); k-- > 0;) {
    const auto found = frames_[k].names.find(value.text);
    if (found != frames_[k].names.end()) return {found->second, value.dtype, value.narrow};
  }
  const std::string name = context_.fresh(std::string(stem) + "_");
  out_.line(
      fmt::format("const {} {} = {};", type_of(value), name, without_parentheses(value.text)));
  frames_.back().names[value.text] = name;
  return {name, value.dtype, value.narrow};
}

Value ScalarPrinter::emit(const ExprPtr& expr) {
  if (const Value* known = find(expr.get())) return *known;
  Value value = make(expr);
  const bool shared = uses_[expr.get()] > 1 || value.text.size() > kLongestInline;
  const bool trivial = is_atom(value.text) || expr->kind == Kind::axis;
  if (shared && !trivial) value = named(value, stem_of(*expr, context_));
  frames_.back().known[expr.get()] = value;
  return value;
}

Value ScalarPrinter::make(const ExprPtr& expr) {
  switch (expr->kind) {
    case Kind::constant: {
      const bool narrow = expr->dtype == DType::int64 && expr->int_value >= INT32_MIN &&
                          expr->int_value <= INT32_MAX;
      return {literal(expr->dtype, *expr), expr->dtype, narrow};
    }
    case Kind::axis: {
      const AxisBinding& axis = axes_[static_cast<size_t>(expr->axis)];
      return {axis.variable, DType::int64, axis.extent <= INT32_MAX};
    }
    case Kind::load:
      return make_load(*expr);
    case Kind::unary: {
      Value a = emit(expr->operands[0]);
      const bool repeats = !is_floating(a.dtype) || expr->unary == ir::UnaryOp::is_nan;
      if (repeats && !is_atom(a.text)) a = named(a, "t");
      Value value = unary_value(expr->unary, a);
      value.dtype = expr->dtype;
      return value;
    }
    case Kind::binary:
      return make_binary(*expr);
    case Kind::select:
      return make_select(*expr);
    case Kind::cast:
      return cast_value(emit(expr->operands[0]), expr->dtype);
  }
  KE_ASSERT(false);
}

Value ScalarPrinter::make_binary(const Expr& expr) {
  const BinaryOp op = expr.binary;
  const bool repeats = op == BinaryOp::maximum || op == BinaryOp::minimum || op == BinaryOp::pow;
  Value a = emit(expr.operands[0]);
  if (repeats && !is_atom(a.text)) a = named(a, "t");
  Value b = emit(expr.operands[1]);
  if (repeats && !is_atom(b.text) && !is_floating(b.dtype)) b = named(b, "t");
  const std::optional<Range> range = range_of(expr, axes_);
  if (range && (op <= BinaryOp::mul || is_plain_division(op))) {
    const std::string_view sign = op == BinaryOp::add                           ? "+"
                                  : op == BinaryOp::sub                         ? "-"
                                  : op == BinaryOp::mul                         ? "*"
                                  : op == BinaryOp::mod || op == BinaryOp::fmod ? "%"
                                                                                : "/";
    // A quotient is no larger than what is divided, so division never needs more bits.
    const bool narrow = a.narrow && b.narrow && range->fits_int();
    const bool widen = a.narrow && b.narrow && !narrow;
    return {fmt::format("({}{} {} {})", widen ? "(int64_t)" : "", a.text, sign, b.text),
            DType::int64, narrow};
  }
  if (meets_row_value(expr, 0)) a.text = fmt::format("ke_rounded({})", without_parentheses(a.text));
  if (meets_row_value(expr, 1)) b.text = fmt::format("ke_rounded({})", without_parentheses(b.text));
  Value value = binary_value(op, a, b);
  value.dtype = expr.dtype;
  return value;
}

// Whether operand k is a product that is added to a value of the row or subtracted from it. The
// row's value was made of rounded products: where all of them are equal the difference is zero,
// which a fused multiplication would miss by what it does not round.
bool ScalarPrinter::meets_row_value(const Expr& expr, size_t k) const {
  const bool adds = expr.binary == BinaryOp::add || expr.binary == BinaryOp::sub;
  const Expr& other = *expr.operands[1 - k];
  return adds && is_floating(expr.dtype) && expr.operands[k]->kind == Kind::binary &&
         expr.operands[k]->binary == BinaryOp::mul && other.kind == Kind::load &&
         held_.contains(other.tensor);
}

// --- Addresses and loads ------------------------------------------------------------------------

std::string ScalarPrinter::offset(ir::TensorId tensor, const std::vector<ExprPtr>& indices) {
  const target::Address address = target::address_of(context_.tensor(tensor), indices);
  std::optional<Range> total = Range{address.base, address.base};
  for (const target::Address::Term& term : address.terms) {
    kept_.push_back(term.factor);
    const std::optional<Range> factor = range_of(*term.factor, axes_);
    if (!factor || !total) {
      total.reset();
      break;
    }
    const auto part = range_of_binary(BinaryOp::mul, *factor, {term.coefficient, term.coefficient});
    total = part ? range_of_binary(BinaryOp::add, *total, *part) : std::nullopt;
  }
  const bool wide = !total || !total->fits_int();
  std::string text;
  for (const target::Address::Term& term : address.terms) {
    const bool negative = term.coefficient < 0;
    const int64_t size = negative ? -term.coefficient : term.coefficient;
    const Value factor = emit(term.factor);
    text += text.empty() ? (negative ? "-" : "") : negative ? " - " : " + ";
    text += fmt::format("{}{}", wide && factor.narrow ? "(int64_t)" : "", factor.text);
    if (size != 1) text += fmt::format(" * {}", size);
  }
  if (address.base == 0 && !text.empty()) return text;
  const std::string_view sign = text.empty()       ? (address.base < 0 ? "-" : "")
                                : address.base < 0 ? " - "
                                                   : " + ";
  return fmt::format("{}{}{}", text, sign, std::abs(address.base));
}

Value ScalarPrinter::make_load(const Expr& expr) {
  const auto held = held_.find(expr.tensor);
  if (held != held_.end()) return {held->second, expr.dtype};
  std::string place;
  for (const HeldLoad& at_hand : held_loads_) {
    if (same(*at_hand.load, expr)) place = at_hand.text;
  }
  if (place.empty()) {
    place =
        fmt::format("{}[{}]", context_.pointer(expr.tensor), offset(expr.tensor, expr.operands));
  }
  if (!is_half(expr.dtype)) return {place, expr.dtype};
  const std::string_view type = expr.dtype == DType::float16 ? "f16" : "bf16";
  return {fmt::format("ke_load_{}(&{})", type, place), expr.dtype};
}

Value ScalarPrinter::make_select(const Expr& expr) {
  Value condition = emit(expr.operands[0]);
  const bool lazy =
      target::contains_load(*expr.operands[1]) || target::contains_load(*expr.operands[2]);
  if (!lazy) {
    const Value a = emit(expr.operands[1]), b = emit(expr.operands[2]);
    return {fmt::format("({} ? {} : {})", condition.text, a.text, b.text), expr.dtype,
            a.narrow && b.narrow};
  }
  if (!is_atom(condition.text)) condition = named(condition, "inside");
  const std::string name = context_.fresh("chosen_");
  out_.line(fmt::format("{} {};", target::compute_type(expr.dtype), name));
  for (size_t side = 1; side <= 2; ++side) {
    out_.open(side == 1 ? fmt::format("if ({})", condition.text) : std::string("else"));
    frames_.emplace_back();
    const Value value = emit(expr.operands[side]);
    out_.line(fmt::format("{} = {};", name, value.text));
    frames_.pop_back();
    out_.close();
  }
  return {name, expr.dtype};
}

}  // namespace ke::cuda
