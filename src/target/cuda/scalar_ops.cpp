// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/scalar_ops.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/assert.hpp"

namespace ke::cuda {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;

// An integer of 64 bits made one of the dtype, which wraps it.
Value wrapped(std::string text, DType dtype) {
  if (dtype == DType::int64) return {std::move(text), dtype};
  return {fmt::format("({}){}", target::compute_type(dtype), text), dtype};
}

Value truth_of(const Value& a) { return cast_value(a, DType::boolean); }

Value boolean_unary(UnaryOp op, const Value& a) {
  if (op == UnaryOp::logical_not || (op == UnaryOp::bit_not && a.dtype == DType::boolean)) {
    return {fmt::format("(!{})", truth_of(a).text), DType::boolean};
  }
  if (!is_floating(a.dtype)) return {"false", DType::boolean};
  if (op == UnaryOp::is_nan) return {fmt::format("({0} != {0})", a.text), DType::boolean};
  return {fmt::format("(ke_abs({}) == {})", a.text, float_literal(a.dtype, HUGE_VAL)),
          DType::boolean};
}

Value integer_unary(UnaryOp op, const Value& a) {
  if (op == UnaryOp::neg) return wrapped(fmt::format("ke_int_sub(0, {})", a.text), a.dtype);
  if (op == UnaryOp::abs) return wrapped(fmt::format("ke_int_abs({})", a.text), a.dtype);
  if (op == UnaryOp::bit_not) return wrapped(fmt::format("(~(int64_t){})", a.text), a.dtype);
  if (op == UnaryOp::sign) {
    return wrapped(fmt::format("(({0} > 0) - ({0} < 0))", a.text), a.dtype);
  }
  return a;  // floor, ceil, trunc, round
}

std::optional<Value> power_by_constant(const Value& a, const Value& b) {
  if (!is_floating(a.dtype)) return std::nullopt;
  const std::string_view x = a.text;
  const auto is = [&](double exponent) { return b.text == float_literal(a.dtype, exponent); };
  const std::string_view one = a.dtype == DType::float64 ? "1.0" : "1.0f";
  const auto value = [&](std::string text) { return Value{std::move(text), a.dtype}; };
  if (is(1)) return a;
  if (is(2)) return value(fmt::format("({0} * {0})", x));
  if (is(3)) return value(fmt::format("({0} * {0} * {0})", x));
  if (is(-1)) return value(fmt::format("({1} / {0})", x, one));
  if (is(-2)) return value(fmt::format("({1} / ({0} * {0}))", x, one));
  if (is(0.5)) return unary_value(UnaryOp::sqrt, a);
  if (is(-0.5)) return unary_value(UnaryOp::rsqrt, a);
  return std::nullopt;
}

// Logic on truth values: what arithmetic and comparison of booleans come to.
std::string logic_text(BinaryOp op, const std::string& a, const std::string& b) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::maximum:
    case BinaryOp::logical_or:
    case BinaryOp::bit_or:
      return fmt::format("({} || {})", a, b);
    case BinaryOp::mul:
    case BinaryOp::minimum:
    case BinaryOp::logical_and:
    case BinaryOp::bit_and:
      return fmt::format("({} && {})", a, b);
    case BinaryOp::ne:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_xor:
      return fmt::format("({} != {})", a, b);
    case BinaryOp::eq:
      return fmt::format("({} == {})", a, b);
    case BinaryOp::lt:
      return fmt::format("(!{} && {})", a, b);
    case BinaryOp::le:
      return fmt::format("(!{} || {})", a, b);
    case BinaryOp::gt:
      return fmt::format("({} && !{})", a, b);
    case BinaryOp::ge:
      return fmt::format("({} || !{})", a, b);
    case BinaryOp::sub:
    case BinaryOp::div:
    case BinaryOp::floor_div:
    case BinaryOp::mod:
    case BinaryOp::fmod:
    case BinaryOp::pow:
    case BinaryOp::atan2:
    case BinaryOp::copysign:
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      break;
  }
  KE_ASSERT(false && "no such operation on booleans");
}

Value float_binary(BinaryOp op, const Value& a, const Value& b) {
  const std::string_view sign = op == BinaryOp::add   ? "+"
                                : op == BinaryOp::sub ? "-"
                                : op == BinaryOp::mul ? "*"
                                : op == BinaryOp::div ? "/"
                                                      : "";
  if (!sign.empty()) return {fmt::format("({} {} {})", a.text, sign, b.text), a.dtype};
  if (op == BinaryOp::pow) {
    if (auto value = power_by_constant(a, b)) return *value;
  }
  return {fmt::format("ke_{}({}, {})", enum_name(op), a.text, b.text), a.dtype};
}

Value integer_binary(BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::maximum || op == BinaryOp::minimum) {
    const std::string_view sign = op == BinaryOp::maximum ? ">" : "<";
    return {fmt::format("({0} {1} {2} ? {0} : {2})", a.text, sign, b.text), a.dtype,
            a.narrow && b.narrow};
  }
  const std::string_view sign = op == BinaryOp::bit_and   ? "&"
                                : op == BinaryOp::bit_or  ? "|"
                                : op == BinaryOp::bit_xor ? "^"
                                                          : "";
  if (!sign.empty()) return wrapped(fmt::format("({} {} {})", a.text, sign, b.text), a.dtype);
  const bool shift = op == BinaryOp::shift_left || op == BinaryOp::shift_right;
  const std::string bits = shift ? fmt::format(", {}", 8 * bytes_of(a.dtype)) : "";
  return wrapped(fmt::format("ke_int_{}({}, {}{})", enum_name(op), a.text, b.text, bits), a.dtype);
}

}  // namespace

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

Value unary_value(UnaryOp op, const Value& a) {
  const bool predicate =
      op == UnaryOp::logical_not || op == UnaryOp::is_nan || op == UnaryOp::is_inf;
  if (predicate || a.dtype == DType::boolean) return boolean_unary(op, a);
  if (is_integral(a.dtype)) return integer_unary(op, a);
  if (op == UnaryOp::neg)
    return {fmt::format("(-{}{})", a.text[0] == '-' ? " " : "", a.text), a.dtype};
  return {fmt::format("ke_{}({})", enum_name(op), a.text), a.dtype};
}

Value binary_value(BinaryOp op, const Value& a, const Value& b) {
  const bool logical = op >= BinaryOp::logical_and && op <= BinaryOp::logical_xor;
  if (logical || a.dtype == DType::boolean) {
    return {logic_text(op, truth_of(a).text, truth_of(b).text), DType::boolean};
  }
  if (op >= BinaryOp::eq && op <= BinaryOp::ge) {
    constexpr std::string_view signs[] = {"==", "!=", "<", "<=", ">", ">="};
    const auto sign = signs[static_cast<int>(op) - static_cast<int>(BinaryOp::eq)];
    return {fmt::format("({} {} {})", a.text, sign, b.text), DType::boolean};
  }
  return is_floating(a.dtype) ? float_binary(op, a, b) : integer_binary(op, a, b);
}

Value cast_value(const Value& value, DType dtype) {
  if (value.dtype == dtype && !is_half(dtype)) return value;
  const std::string_view x = value.text;
  if (dtype == DType::boolean) return {fmt::format("({} != 0)", x), dtype};
  if (is_half(dtype)) {
    return {fmt::format("ke_round_{}((float){})", dtype == DType::float16 ? "f16" : "bf16", x),
            dtype};
  }
  if (is_half(value.dtype) && dtype == DType::float32) return {value.text, dtype};
  const std::string_view type = target::compute_type(dtype);
  if (is_floating(value.dtype) && !is_floating(dtype) && dtype != DType::int64) {
    return {fmt::format("({})(int64_t){}", type, x), dtype};
  }
  return {fmt::format("({}){}", type, x), dtype};
}

}  // namespace ke::cuda
