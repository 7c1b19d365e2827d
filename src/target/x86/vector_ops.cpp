// SPDX-License-Identifier: Apache-2.0
#include "target/x86/vector_ops.hpp"

#include <fmt/format.h>

#include <cctype>

#include "base/assert.hpp"

namespace ke::x86 {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;

std::string_view element_name(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "f64";
    case DType::float32:
      return "f32";
    case DType::float16:
      return "f16";
    case DType::bfloat16:
      return "bf16";
    case DType::int64:
      return "i64";
    case DType::int32:
      return "i32";
    case DType::int16:
      return "i16";
    case DType::int8:
      return "i8";
    case DType::uint8:
      return "u8";
    case DType::boolean:
      return "bool";
  }
  KE_ASSERT(false);
}

// The element of the vectors that hold values of a dtype.
std::string_view held_element(DType dtype) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) return "f32";
  return dtype == DType::boolean ? "i32" : element_name(dtype);
}

int64_t held_bytes(DType dtype) {
  const std::string_view name = held_element(dtype);
  return name == "f64" || name == "i64"   ? 8
         : name == "f32" || name == "i32" ? 4
         : name == "i16"                  ? 2
                                          : 1;
}

DType mask_dtype(DType dtype) {  // the integer type of a comparison's lanes
  switch (held_bytes(dtype)) {
    case 8:
      return DType::int64;
    case 4:
      return DType::int32;
    case 2:
      return DType::int16;
    default:
      return DType::int8;
  }
}

Value vector_of(std::string text, DType dtype) { return {std::move(text), dtype, true}; }

// Any text as an operand: what is not a name or call is put in parentheses by its maker already.
std::string converted(PrintContext& context, const std::string& text, DType to, int lanes) {
  return fmt::format("__builtin_convertvector({}, {})", text, vector_type(context, to, lanes));
}

// A comparison of vectors of `operand` made a mask of 32-bit lanes.
Value as_mask(PrintContext& context, const std::string& text, DType operand, int lanes) {
  if (mask_dtype(operand) == DType::int32) return vector_of(text, DType::boolean);
  return vector_of(converted(context, text, DType::boolean, lanes), DType::boolean);
}

// A mask of 32-bit lanes as wide as the lanes of `dtype`.
std::string widened(PrintContext& context, const Value& mask, DType dtype, int lanes) {
  if (mask_dtype(dtype) == DType::int32) return mask.text;
  return converted(context, mask.text, mask_dtype(dtype), lanes);
}

std::string call(PrintContext& context, std::string_view what, DType dtype, int lanes,
                 std::string_view arguments) {
  const std::string type = lanes > 1 ? fmt::format("{}x{}", held_element(dtype), lanes)
                                     : std::string(held_element(dtype));
  context.helpers.insert(fmt::format("{}:{}", what, type));
  return fmt::format("{}_of({})", what, arguments);
}

Value truth_of(PrintContext& context, const Value& a, int lanes) {  // a != 0
  return cast_value(context, a, DType::boolean, lanes);
}

Value boolean_unary(PrintContext& context, UnaryOp op, const Value& a, int lanes) {
  const bool floating = is_floating(a.dtype);
  if (op == UnaryOp::logical_not || (op == UnaryOp::bit_not && a.dtype == DType::boolean)) {
    const Value truth = truth_of(context, a, lanes);
    return {fmt::format("({}{})", a.vector ? "~" : "!", truth.text), DType::boolean, a.vector};
  }
  if (!floating) return {"false", DType::boolean, false};
  const std::string_view none = a.dtype == DType::float64 ? "" : "f";
  const std::string text =
      op == UnaryOp::is_nan
          ? fmt::format("({0} != {0})", a.text)
          : fmt::format("({} == __builtin_inf{}())",
                        call(context, "abs", a.dtype, a.vector ? lanes : 1, a.text), none);
  if (!a.vector) return {text, DType::boolean, false};
  return as_mask(context, text, a.dtype, lanes);
}

Value integer_unary(PrintContext& context, UnaryOp op, const Value& a, int lanes) {
  std::string text = a.text;
  const std::string_view x = a.text;
  if (op == UnaryOp::neg) text = fmt::format("(-{})", x);
  if (op == UnaryOp::bit_not) text = fmt::format("(~{})", x);
  if (op == UnaryOp::abs) text = fmt::format("({0} < 0 ? -{0} : {0})", x);
  if (op == UnaryOp::sign) {
    text = a.vector ? fmt::format("(({0} < 0) - ({0} > 0))", x)
                    : fmt::format("(({0} > 0) - ({0} < 0))", x);
  }
  if (op >= UnaryOp::floor && op <= UnaryOp::round) return a;
  const std::string type =
      a.vector ? vector_type(context, a.dtype, lanes) : std::string(target::compute_type(a.dtype));
  return {fmt::format("(({}){})", type, text), a.dtype, a.vector};
}

std::optional<Value> power_by_constant(PrintContext& context, const Value& a, const Value& b,
                                       int lanes) {
  if (b.vector || !is_floating(a.dtype)) return std::nullopt;
  const std::string_view x = a.text;
  const auto is = [&](double exponent) {
    return b.text == target::float_literal(a.dtype, exponent);
  };
  const std::string_view one = a.dtype == DType::float64 ? "1.0" : "1.0f";
  const auto value = [&](std::string text) { return Value{std::move(text), a.dtype, a.vector}; };
  if (is(1)) return a;
  if (is(2)) return value(fmt::format("({0} * {0})", x));
  if (is(3)) return value(fmt::format("({0} * {0} * {0})", x));
  if (is(-1)) return value(fmt::format("({1} / {0})", x, one));
  if (is(-2)) return value(fmt::format("({1} / ({0} * {0}))", x, one));
  if (is(0.5)) return unary_value(context, UnaryOp::sqrt, a, lanes);
  if (is(-0.5)) return unary_value(context, UnaryOp::rsqrt, a, lanes);
  return std::nullopt;
}

// Logic on truth values: masks in vectors, bool otherwise.
std::string logic_text(BinaryOp op, const std::string& a, const std::string& b, bool vector) {
  const std::string_view no = vector ? "~" : "!";
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::maximum:
    case BinaryOp::logical_or:
    case BinaryOp::bit_or:
      return fmt::format("({} | {})", a, b);
    case BinaryOp::mul:
    case BinaryOp::minimum:
    case BinaryOp::logical_and:
    case BinaryOp::bit_and:
      return fmt::format("({} & {})", a, b);
    case BinaryOp::ne:
    case BinaryOp::logical_xor:
    case BinaryOp::bit_xor:
      return fmt::format("({} ^ {})", a, b);
    case BinaryOp::eq:
      return fmt::format("{}({} ^ {})", no, a, b);
    case BinaryOp::lt:
      return fmt::format("({}{} & {})", no, a, b);
    case BinaryOp::le:
      return fmt::format("({}{} | {})", no, a, b);
    case BinaryOp::gt:
      return fmt::format("({} & {}{})", a, no, b);
    case BinaryOp::ge:
      return fmt::format("({} | {}{})", a, no, b);
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

Value logic_value(PrintContext& context, BinaryOp op, const Value& a, const Value& b, int lanes) {
  Value x = truth_of(context, a, lanes), y = truth_of(context, b, lanes);
  const bool vector = x.vector || y.vector;
  if (vector) {
    x = splat_value(context, x, lanes);
    y = splat_value(context, y, lanes);
  }
  std::string text = logic_text(op, x.text, y.text, vector);
  if (!vector) text = fmt::format("(bool){}", text);
  return {vector ? text : "(" + text + ")", DType::boolean, vector};
}

Value compare_value(PrintContext& context, BinaryOp op, const Value& a, const Value& b, int lanes) {
  constexpr std::string_view signs[] = {"==", "!=", "<", "<=", ">", ">="};
  const auto sign = signs[static_cast<int>(op) - static_cast<int>(BinaryOp::eq)];
  const std::string text = fmt::format("({} {} {})", a.text, sign, b.text);
  if (!a.vector && !b.vector) return {text, DType::boolean, false};
  return as_mask(context, text, a.dtype, lanes);
}

// maximum and minimum; a literal operand is never NaN and needs one comparison only.
Value extreme_value(PrintContext& context, BinaryOp op, const Value& a, const Value& b, int lanes) {
  const bool vector = a.vector || b.vector;
  const bool literal = !b.vector && !b.text.empty() && b.text.find("nan") == std::string::npos &&
                       (std::isdigit(b.text[0]) != 0 || b.text[0] == '-');
  if (literal && is_floating(a.dtype)) {
    const std::string bound = vector ? splat_value(context, b, lanes).text : b.text;
    return {fmt::format("({0} {1} {2} ? {3} : {0})", a.text,
                        op == BinaryOp::maximum ? "<=" : ">=", b.text, bound),
            a.dtype, vector};
  }
  const Value x = vector ? splat_value(context, a, lanes) : a;
  const Value y = vector ? splat_value(context, b, lanes) : b;
  return {call(context, enum_name(op), a.dtype, vector ? lanes : 1, x.text + ", " + y.text),
          a.dtype, vector};
}

// Operations that are functions of two floats.
std::optional<Value> float_function(PrintContext& context, BinaryOp op, const Value& a,
                                    const Value& b, int lanes) {
  const bool vector = a.vector || b.vector;
  if (vector && (op == BinaryOp::floor_div || op == BinaryOp::mod)) return std::nullopt;
  const Value x = vector ? splat_value(context, a, lanes) : a;
  const Value y = vector ? splat_value(context, b, lanes) : b;
  return Value{call(context, enum_name(op), a.dtype, vector ? lanes : 1, x.text + ", " + y.text),
               a.dtype, vector};
}

std::optional<Value> integer_function(PrintContext& context, BinaryOp op, const Value& a,
                                      const Value& b) {
  if (a.vector || b.vector) return std::nullopt;
  const bool shift = op == BinaryOp::shift_left || op == BinaryOp::shift_right;
  const std::string bits = shift ? fmt::format(", {}", 8 * bytes_of(a.dtype)) : "";
  context.helpers.insert(fmt::format("{}:i64", enum_name(op)));
  const std::string text = fmt::format("{}_of({}, {}{})", enum_name(op), a.text, b.text, bits);
  if (a.dtype == DType::int64) return Value{text, a.dtype, false};
  return Value{fmt::format("({}){}", target::compute_type(a.dtype), text), a.dtype, false};
}

std::string_view operator_sign(BinaryOp op) {
  if (op == BinaryOp::add) return "+";
  if (op == BinaryOp::sub) return "-";
  if (op == BinaryOp::mul) return "*";
  if (op == BinaryOp::bit_and) return "&";
  if (op == BinaryOp::bit_or) return "|";
  if (op == BinaryOp::bit_xor) return "^";
  return "";
}

Value cast_vector(PrintContext& context, const Value& value, DType dtype, int lanes) {
  const DType from = value.dtype;
  const std::string_view x = value.text;
  if (dtype == DType::boolean) {
    return as_mask(context, fmt::format("({} != 0)", x), from, lanes);
  }
  if (from == DType::boolean) {
    if (dtype == DType::int32) return vector_of(fmt::format("({} & 1)", x), dtype);
    if (dtype == DType::float64 || !is_floating(dtype)) {
      return vector_of(converted(context, fmt::format("{} & 1", x), dtype, lanes), dtype);
    }
    return vector_of(fmt::format("(({})({} & 0x3f800000))", vector_type(context, dtype, lanes), x),
                     dtype);
  }
  if (is_floating(from) && bytes_of(dtype) < 4 && !is_floating(dtype)) {
    const std::string whole = converted(context, value.text, DType::int32, lanes);
    return vector_of(converted(context, whole, dtype, lanes), dtype);
  }
  const bool same_element = held_element(from) == held_element(dtype);
  std::string text = same_element ? value.text : converted(context, value.text, dtype, lanes);
  if (is_half(dtype)) {
    context.helpers.insert("round_to:" + memory_type(dtype, lanes));
    text = fmt::format("round_to_{}({})", memory_type(dtype, lanes), text);
  }
  return vector_of(text, dtype);
}

}  // namespace

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

std::string memory_type(DType dtype, int lanes) {
  return lanes > 1 ? fmt::format("{}x{}", element_name(dtype), lanes)
                   : std::string(element_name(dtype));
}

std::string vector_type(PrintContext& context, DType dtype, int lanes) {
  if (lanes == 1) return std::string(target::compute_type(dtype));
  std::string name = fmt::format("{}x{}", held_element(dtype), lanes);
  context.helpers.insert(name);
  return name;
}

Value splat_value(PrintContext& context, const Value& value, int lanes) {
  if (value.vector || lanes == 1) return value;
  const std::string type = vector_type(context, value.dtype, lanes);
  if (value.text == "0.0f" || value.text == "0.0") return vector_of(type + "{}", value.dtype);
  if (value.dtype == DType::boolean) {  // minus: a mask; x - 0 keeps the sign of zero
    return vector_of(fmt::format("({}{{}} - (int32_t){})", type, value.text), value.dtype);
  }
  return vector_of(fmt::format("({} - {}{{}})", value.text, type), value.dtype);
}

Value unary_value(PrintContext& context, UnaryOp op, const Value& a, int lanes) {
  const bool predicate =
      op == UnaryOp::logical_not || op == UnaryOp::is_nan || op == UnaryOp::is_inf;
  if (predicate || a.dtype == DType::boolean) return boolean_unary(context, op, a, lanes);
  if (is_integral(a.dtype)) return integer_unary(context, op, a, lanes);
  if (op == UnaryOp::neg) {
    return {fmt::format("(-{}{})", a.text[0] == '-' ? " " : "", a.text), a.dtype, a.vector};
  }
  return {call(context, enum_name(op), a.dtype, a.vector ? lanes : 1, a.text), a.dtype, a.vector};
}

std::optional<Value> binary_value(PrintContext& context, BinaryOp op, const Value& a,
                                  const Value& b, int lanes) {
  const bool logical = op >= BinaryOp::logical_and && op <= BinaryOp::logical_xor;
  if (logical || a.dtype == DType::boolean) return logic_value(context, op, a, b, lanes);
  if (op >= BinaryOp::eq && op <= BinaryOp::ge) return compare_value(context, op, a, b, lanes);
  if (op == BinaryOp::maximum || op == BinaryOp::minimum) {
    return extreme_value(context, op, a, b, lanes);
  }
  const bool vector = a.vector || b.vector;
  if (op == BinaryOp::pow) {
    if (auto value = power_by_constant(context, a, b, lanes)) return value;
  }
  if (op == BinaryOp::div && is_floating(a.dtype)) {
    return Value{fmt::format("({} / {})", a.text, b.text), a.dtype, vector};
  }
  const std::string_view sign = operator_sign(op);
  if (!sign.empty()) {
    const std::string text = fmt::format("({} {} {})", a.text, sign, b.text);
    const bool narrow = is_integral(a.dtype) && bytes_of(a.dtype) < 4 && !vector;
    if (!narrow) return Value{text, a.dtype, vector};
    return Value{fmt::format("(({}){})", target::compute_type(a.dtype), text), a.dtype, false};
  }
  if (is_floating(a.dtype)) return float_function(context, op, a, b, lanes);
  return integer_function(context, op, a, b);
}

Value cast_value(PrintContext& context, const Value& value, DType dtype, int lanes) {
  if (value.dtype == dtype && !is_half(dtype)) return value;
  if (value.vector) return cast_vector(context, value, dtype, lanes);
  const std::string_view x = value.text;
  if (dtype == DType::boolean) return {fmt::format("({} != 0)", x), dtype, false};
  const std::string_view type = target::compute_type(dtype);
  if (is_half(dtype)) {
    context.helpers.insert("round_to:" + memory_type(dtype, 1));
    return {fmt::format("round_to_{}((float){})", memory_type(dtype, 1), x), dtype, false};
  }
  if (is_half(value.dtype) && dtype == DType::float32) return {value.text, dtype, false};
  if (is_floating(value.dtype) && !is_floating(dtype) && dtype != DType::int64) {
    return {fmt::format("({})(int64_t){}", type, x), dtype, false};
  }
  return {fmt::format("({}){}", type, x), dtype, false};
}

Value select_value(PrintContext& context, const Value& condition, const Value& then_value,
                   const Value& else_value, int lanes) {
  const bool vector = condition.vector || then_value.vector || else_value.vector;
  if (!vector) {
    return {fmt::format("({} ? {} : {})", condition.text, then_value.text, else_value.text),
            then_value.dtype, false};
  }
  const Value a = splat_value(context, then_value, lanes);
  const Value b = splat_value(context, else_value, lanes);
  const std::string mask =
      condition.vector ? widened(context, condition, a.dtype, lanes) : condition.text;
  return vector_of(fmt::format("({} ? {} : {})", mask, a.text, b.text), a.dtype);
}

}  // namespace ke::x86
