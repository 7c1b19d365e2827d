// SPDX-License-Identifier: Apache-2.0
//
// Scalar semantics after PyTorch's CPU kernels: remainder and floor division follow Python's signs,
// round is half to even, sign(NaN) is 0, max and min propagate NaN.
#include "ir/scalar.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace ke::ir {
namespace {

int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// The int64 wrapped to the width of dtype.
int64_t wrapped(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::int32:
      return static_cast<int32_t>(value);
    case DType::int16:
      return static_cast<int16_t>(value);
    case DType::int8:
      return static_cast<int8_t>(value);
    case DType::uint8:
      return static_cast<uint8_t>(value);
    case DType::boolean:
      return value != 0;
    case DType::int64:
      return value;
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  KE_ASSERT(false && "wrapped() of a floating dtype");
}

Scalar real(double value) { return {.real = value, .integer = 0}; }
Scalar integer(int64_t value) { return {.real = 0, .integer = value}; }

template <class Float>
Float unary_float(UnaryOp op, Float a) {
  switch (op) {
    case UnaryOp::neg:
      return -a;
    case UnaryOp::abs:
      return std::abs(a);
    case UnaryOp::exp:
      return std::exp(a);
    case UnaryOp::exp2:
      return std::exp2(a);
    case UnaryOp::expm1:
      return std::expm1(a);
    case UnaryOp::log:
      return std::log(a);
    case UnaryOp::log2:
      return std::log2(a);
    case UnaryOp::log10:
      return std::log10(a);
    case UnaryOp::log1p:
      return std::log1p(a);
    case UnaryOp::sqrt:
      return std::sqrt(a);
    case UnaryOp::rsqrt:
      return Float{1} / std::sqrt(a);
    case UnaryOp::sin:
      return std::sin(a);
    case UnaryOp::cos:
      return std::cos(a);
    case UnaryOp::tan:
      return std::tan(a);
    case UnaryOp::asin:
      return std::asin(a);
    case UnaryOp::acos:
      return std::acos(a);
    case UnaryOp::atan:
      return std::atan(a);
    case UnaryOp::sinh:
      return std::sinh(a);
    case UnaryOp::cosh:
      return std::cosh(a);
    case UnaryOp::tanh:
      return std::tanh(a);
    case UnaryOp::asinh:
      return std::asinh(a);
    case UnaryOp::acosh:
      return std::acosh(a);
    case UnaryOp::atanh:
      return std::atanh(a);
    case UnaryOp::erf:
      return std::erf(a);
    case UnaryOp::floor:
      return std::floor(a);
    case UnaryOp::ceil:
      return std::ceil(a);
    case UnaryOp::trunc:
      return std::trunc(a);
    case UnaryOp::round:
      return std::nearbyint(a);
    case UnaryOp::sign:
      return static_cast<Float>((a > 0) - (a < 0));
    case UnaryOp::logical_not:
    case UnaryOp::bit_not:
    case UnaryOp::is_nan:
    case UnaryOp::is_inf:
      break;
  }
  KE_ASSERT(false && "no such floating operation");
}

int64_t unary_int(UnaryOp op, int64_t a) {
  if (op == UnaryOp::neg) return wrap_sub(0, a);
  if (op == UnaryOp::abs) return a < 0 ? wrap_sub(0, a) : a;
  if (op == UnaryOp::sign) return (a > 0) - (a < 0);
  if (op == UnaryOp::bit_not) return ~a;
  return a;  // floor, ceil, trunc, round
}

template <class Float>
Float floor_mod(Float a, Float b) {
  Float rest = std::fmod(a, b);
  if (rest != 0 && (b < 0) != (rest < 0)) rest += b;
  return rest;
}

// floor(a / b) computed through the exact remainder, so that it agrees with floor_mod.
template <class Float>
Float floor_divide(Float a, Float b) {
  if (b == 0) return a / b;
  Float rest = std::fmod(a, b);
  Float quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(Float{0}, a / b);
  Float whole = std::floor(quotient);
  return quotient - whole > Float{0.5} ? whole + 1 : whole;
}

template <class Float>
Float binary_float(BinaryOp op, Float a, Float b) {
  if (op == BinaryOp::add) return a + b;
  if (op == BinaryOp::sub) return a - b;
  if (op == BinaryOp::mul) return a * b;
  if (op == BinaryOp::div) return a / b;
  if (op == BinaryOp::floor_div) return floor_divide(a, b);
  if (op == BinaryOp::mod) return floor_mod(a, b);
  if (op == BinaryOp::fmod) return std::fmod(a, b);
  if (op == BinaryOp::pow) return std::pow(a, b);
  if (op == BinaryOp::maximum) return std::isnan(a) || a > b ? a : b;
  if (op == BinaryOp::minimum) return std::isnan(a) || a < b ? a : b;
  if (op == BinaryOp::atan2) return std::atan2(a, b);
  KE_ASSERT(op == BinaryOp::copysign);
  return std::copysign(a, b);
}

int64_t truncating_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap_sub(0, a) : a / b;
}
int64_t truncating_rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

int64_t floor_divide_int(int64_t a, int64_t b) {
  int64_t rest = truncating_rest(a, b);
  return truncating_divide(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}
int64_t floor_mod_int(int64_t a, int64_t b) {
  int64_t rest = truncating_rest(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t power_int(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b != 0; b >>= 1, a = wrap_mul(a, a)) {
    if (b & 1) result = wrap_mul(result, a);
  }
  return result;
}

int64_t shift_left_int(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t shift_right_int(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}

int64_t binary_int(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  const int64_t bits = 8 * bytes_of(dtype);
  if (op == BinaryOp::add) return wrap_add(a, b);
  if (op == BinaryOp::sub) return wrap_sub(a, b);
  if (op == BinaryOp::mul) return wrap_mul(a, b);
  if (op == BinaryOp::div) return truncating_divide(a, b);
  if (op == BinaryOp::floor_div) return floor_divide_int(a, b);
  if (op == BinaryOp::mod) return floor_mod_int(a, b);
  if (op == BinaryOp::fmod) return truncating_rest(a, b);
  if (op == BinaryOp::pow) return power_int(a, b);
  if (op == BinaryOp::maximum) return a > b ? a : b;
  if (op == BinaryOp::minimum) return a < b ? a : b;
  if (op == BinaryOp::bit_and) return a & b;
  if (op == BinaryOp::bit_or) return a | b;
  if (op == BinaryOp::bit_xor) return a ^ b;
  if (op == BinaryOp::shift_left) return shift_left_int(a, b, bits);
  KE_ASSERT(op == BinaryOp::shift_right);
  return shift_right_int(a, b, bits);
}

template <class Value>
bool compare(BinaryOp op, Value a, Value b) {
  if (op == BinaryOp::eq) return a == b;
  if (op == BinaryOp::ne) return a != b;
  if (op == BinaryOp::lt) return a < b;
  if (op == BinaryOp::le) return a <= b;
  if (op == BinaryOp::gt) return a > b;
  if (op == BinaryOp::ge) return a >= b;
  if (op == BinaryOp::logical_and) return a != 0 && b != 0;
  if (op == BinaryOp::logical_or) return a != 0 || b != 0;
  KE_ASSERT(op == BinaryOp::logical_xor);
  return (a != 0) != (b != 0);
}

bool yields_boolean(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::logical_xor; }

int64_t truncated(double value) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (value >= -limit && value < limit) return static_cast<int64_t>(value);
  return std::numeric_limits<int64_t>::min();
}

}  // namespace

DType result_dtype(UnaryOp op, DType operand) {
  const bool predicate =
      op == UnaryOp::logical_not || op == UnaryOp::is_nan || op == UnaryOp::is_inf;
  return predicate ? DType::boolean : operand;
}

DType result_dtype(BinaryOp op, DType operand) {
  return yields_boolean(op) ? DType::boolean : operand;
}

bool accepts(UnaryOp op, DType operand) {
  if (op == UnaryOp::logical_not) return true;
  if (op == UnaryOp::bit_not) return !is_floating(operand);
  if (is_floating(operand)) return true;
  const bool whole = op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::sign ||
                     (op >= UnaryOp::floor && op <= UnaryOp::round);
  return whole && is_integral(operand);
}

bool accepts(BinaryOp op, DType operand) {
  if (yields_boolean(op)) return true;
  if (op >= BinaryOp::shift_left) return is_integral(operand);
  if (op >= BinaryOp::bit_and) return !is_floating(operand);
  if (op == BinaryOp::atan2 || op == BinaryOp::copysign) return is_floating(operand);
  if (operand != DType::boolean) return true;
  return op == BinaryOp::add || op == BinaryOp::mul || op == BinaryOp::maximum ||
         op == BinaryOp::minimum;
}

Scalar evaluate(UnaryOp op, DType operand, Scalar a) {
  KE_ASSERT(accepts(op, operand));
  const bool floating = is_floating(operand);
  if (op == UnaryOp::logical_not) return integer(!is_true(operand, a));
  if (op == UnaryOp::is_nan) return integer(floating && std::isnan(a.real));
  if (op == UnaryOp::is_inf) return integer(floating && std::isinf(a.real));
  if (operand == DType::float64) return real(unary_float(op, a.real));
  if (floating) return real(static_cast<double>(unary_float(op, static_cast<float>(a.real))));
  return integer(wrapped(operand, unary_int(op, a.integer)));
}

Scalar evaluate(BinaryOp op, DType operand, Scalar a, Scalar b) {
  KE_ASSERT(accepts(op, operand));
  const bool floating = is_floating(operand);
  if (yields_boolean(op)) {
    return integer(floating ? compare(op, a.real, b.real) : compare(op, a.integer, b.integer));
  }
  if (operand == DType::float64) return real(binary_float(op, a.real, b.real));
  if (floating) {
    const float result = binary_float(op, static_cast<float>(a.real), static_cast<float>(b.real));
    return real(static_cast<double>(result));
  }
  return integer(wrapped(operand, binary_int(op, operand, a.integer, b.integer)));
}

Scalar convert(DType from, DType to, Scalar value) {
  if (!is_floating(to)) {
    if (to == DType::boolean) return integer(is_true(from, value));
    return integer(wrapped(to, is_floating(from) ? truncated(value.real) : value.integer));
  }
  if (!is_floating(from) && to == DType::float64) return real(static_cast<double>(value.integer));
  if (to == DType::float64) return value;
  const float narrow =
      is_floating(from) ? static_cast<float>(value.real) : static_cast<float>(value.integer);
  if (to == DType::float16) return real(static_cast<double>(half_value(half_bits(narrow))));
  if (to == DType::bfloat16) return real(static_cast<double>(bfloat_value(bfloat_bits(narrow))));
  return real(static_cast<double>(narrow));
}

bool is_true(DType dtype, Scalar value) {
  return is_floating(dtype) ? value.real != 0 : value.integer != 0;
}

uint16_t half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to inf
  if (magnitude < 0x38800000u) {  // subnormal: the units are 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

float half_value(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) / 16777216.0f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t widened = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (widened << 23) | (fraction << 13));
}

uint16_t bfloat_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float bfloat_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace ke::ir
