// SPDX-License-Identifier: Apache-2.0
#include "target/triton/scalar_ops.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"

namespace ke::triton {

using ir::BinaryOp;
using ir::DType;
using ir::UnaryOp;

// Division of integers rounds towards zero on a device and down in the interpreter: these take
// what both agree on.
const std::string_view kHelpers = R"(
@triton.jit
def largest(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smallest(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def product(a, b):
    return a * b


# A sum of many blocks, with what rounding took from it: nothing vanishes beside a large term.
@triton.jit
def added(total, lost, term):
    whole = total + term
    taken = whole - total
    return whole, lost + ((total - (whole - taken)) + (term - taken))


@triton.jit
def with_lost(total, lost):
    whole = total + lost
    return tl.where(whole == whole, whole, total)  # what an infinity takes is not a number


@triton.jit
def divided_down(a, b):
    divisor = tl.where(b == 0, 1, b).to(b.dtype)
    quotient = a // divisor
    rest = a - quotient * divisor
    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    return tl.where(b == 0, 0, quotient).to(a.dtype)


@triton.jit
def divided_to_zero(a, b):
    divisor = tl.where(b == 0, 1, b).to(b.dtype)
    quotient = a // divisor
    rest = a - quotient * divisor
    quotient = tl.where((rest != 0) & ((rest < 0) != (a < 0)), quotient + 1, quotient)
    return tl.where(b == 0, 0, quotient).to(a.dtype)


@triton.jit
def rest_down(a, b):
    return tl.where(b == 0, 0, a - divided_down(a, b) * b).to(a.dtype)


@triton.jit
def rest_to_zero(a, b):
    return tl.where(b == 0, 0, a - divided_to_zero(a, b) * b).to(a.dtype)

)";

std::string unary_text(UnaryOp op, DType dtype, const std::string& a) {
  const bool floating = ir::is_floating(dtype);
  const auto library = [&] { return fmt::format("libdevice.{}({})", enum_name(op), a); };
  switch (op) {
    case UnaryOp::neg:
      return fmt::format("(-{})", a);
    case UnaryOp::abs:
      return fmt::format("tl.abs({})", a);
    case UnaryOp::sqrt:
      return fmt::format("tl.sqrt{}({})", dtype == DType::float64 ? "" : "_rn", a);
    case UnaryOp::exp:
    case UnaryOp::exp2:
    case UnaryOp::expm1:
    case UnaryOp::log:
    case UnaryOp::log2:
    case UnaryOp::log10:
    case UnaryOp::log1p:
    case UnaryOp::rsqrt:
    case UnaryOp::sin:
    case UnaryOp::cos:
    case UnaryOp::tan:
    case UnaryOp::asin:
    case UnaryOp::acos:
    case UnaryOp::atan:
    case UnaryOp::sinh:
    case UnaryOp::cosh:
    case UnaryOp::tanh:
    case UnaryOp::asinh:
    case UnaryOp::acosh:
    case UnaryOp::atanh:
    case UnaryOp::erf:
      return library();
    case UnaryOp::floor:
    case UnaryOp::ceil:
      return floating ? fmt::format("tl.{}({})", enum_name(op), a) : a;
    case UnaryOp::trunc:
      return floating ? library() : a;
    case UnaryOp::round:
      return floating ? fmt::format("libdevice.rint({})", a) : a;
    case UnaryOp::sign:
      if (floating) {
        return fmt::format("tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))", a);
      }
      return fmt::format("tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({0}.dtype)", a);
    case UnaryOp::logical_not:
      return fmt::format("({} == 0)", a);
    case UnaryOp::bit_not:
      if (dtype == DType::boolean) return fmt::format("({} == 0)", a);
      return dtype == DType::uint8 ? fmt::format("({} ^ 255)", a) : fmt::format("(~{})", a);
    case UnaryOp::is_nan:
      return fmt::format("({0} != {0})", a);
    case UnaryOp::is_inf:
      return fmt::format("(tl.abs({}) == float('inf'))", a);
  }
  KE_ASSERT(false);
}

std::string binary_text(BinaryOp op, DType dtype, const std::string& a, const std::string& b,
                        bool plain) {
  const bool floating = ir::is_floating(dtype);
  const auto infix = [&](std::string_view sign) { return fmt::format("({} {} {})", a, sign, b); };
  const auto call = [&](std::string_view function) {
    return fmt::format("{}({}, {})", function, a, b);
  };
  switch (op) {
    case BinaryOp::add:
      return infix("+");
    case BinaryOp::sub:
      return infix("-");
    case BinaryOp::mul:
      return infix("*");
    case BinaryOp::div:
      if (!floating) return plain ? infix("//") : call("divided_to_zero");
      return dtype == DType::float64 ? infix("/") : call("tl.div_rn");
    case BinaryOp::floor_div:
      if (floating) return "";
      return plain ? infix("//") : call("divided_down");
    case BinaryOp::mod:
      if (floating) return "";
      return plain ? infix("%") : call("rest_down");
    case BinaryOp::fmod:
      if (floating) return call("libdevice.fmod");
      return call("rest_to_zero");
    case BinaryOp::pow:
      return floating ? call("libdevice.pow") : "";
    case BinaryOp::maximum:
      return floating ? call("largest") : call("tl.maximum");
    case BinaryOp::minimum:
      return floating ? call("smallest") : call("tl.minimum");
    case BinaryOp::atan2:
      return call("libdevice.atan2");
    case BinaryOp::copysign:
      return call("libdevice.copysign");
    case BinaryOp::eq:
      return infix("==");
    case BinaryOp::ne:
      return infix("!=");
    case BinaryOp::lt:
      return infix("<");
    case BinaryOp::le:
      return infix("<=");
    case BinaryOp::gt:
      return infix(">");
    case BinaryOp::ge:
      return infix(">=");
    case BinaryOp::logical_and:
      return fmt::format("(({} != 0) & ({} != 0))", a, b);
    case BinaryOp::logical_or:
      return fmt::format("(({} != 0) | ({} != 0))", a, b);
    case BinaryOp::logical_xor:
      return fmt::format("(({} != 0) ^ ({} != 0))", a, b);
    case BinaryOp::bit_and:
      return infix("&");
    case BinaryOp::bit_or:
      return infix("|");
    case BinaryOp::bit_xor:
      return infix("^");
    case BinaryOp::shift_left:
    case BinaryOp::shift_right:
      return "";  // by more bits than there are has a meaning that a device's has not
  }
  KE_ASSERT(false);
}

}  // namespace ke::triton
