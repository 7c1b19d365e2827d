// SPDX-License-Identifier: Apache-2.0
#include "target/c_printer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "ir/scalar.hpp"

namespace ke::target {
namespace {

constexpr std::string_view kKeywords[] = {
    "alignas",   "alignof",      "and",           "and_eq",
    "asm",       "auto",         "bitand",        "bitor",
    "bool",      "break",        "case",          "catch",
    "char",      "char16_t",     "char32_t",      "char8_t",
    "class",     "co_await",     "co_return",     "co_yield",
    "compl",     "concept",      "const",         "const_cast",
    "consteval", "constexpr",    "constinit",     "continue",
    "decltype",  "default",      "delete",        "do",
    "double",    "dynamic_cast", "else",          "enum",
    "explicit",  "export",       "extern",        "false",
    "float",     "for",          "friend",        "goto",
    "if",        "inline",       "int",           "long",
    "mutable",   "namespace",    "new",           "noexcept",
    "not",       "not_eq",       "nullptr",       "operator",
    "or",        "or_eq",        "private",       "protected",
    "public",    "register",     "requires",      "reinterpret_cast",
    "return",    "short",        "signed",        "sizeof",
    "static",    "static_cast",  "static_assert", "struct",
    "switch",    "template",     "this",          "thread_local",
    "throw",     "true",         "try",           "typedef",
    "typeid",    "typename",     "union",         "unsigned",
    "using",     "virtual",      "void",          "volatile",
    "wchar_t",   "while",        "xor",           "xor_eq"};

using ir::DType;
using ir::Expr;
using ir::ExprPtr;

// Adds coefficient * expr to the address, taking sums and constant factors apart.
void add_term(Address& address, const ExprPtr& expr, int64_t coefficient) {
  if (coefficient == 0) return;
  const auto constant_of = [](const Expr& e) { return e.kind == Expr::Kind::constant; };
  if (constant_of(*expr)) {
    address.base += coefficient * expr->int_value;
    return;
  }
  if (expr->kind == Expr::Kind::unary && expr->unary == ir::UnaryOp::neg) {
    return add_term(address, expr->operands[0], -coefficient);
  }
  if (expr->kind == Expr::Kind::binary) {
    const ExprPtr &a = expr->operands[0], &b = expr->operands[1];
    if (expr->binary == ir::BinaryOp::add || expr->binary == ir::BinaryOp::sub) {
      add_term(address, a, coefficient);
      return add_term(address, b, expr->binary == ir::BinaryOp::add ? coefficient : -coefficient);
    }
    if (expr->binary == ir::BinaryOp::mul && constant_of(*b)) {
      return add_term(address, a, coefficient * b->int_value);
    }
    if (expr->binary == ir::BinaryOp::mul && constant_of(*a)) {
      return add_term(address, b, coefficient * a->int_value);
    }
  }
  for (Address::Term& term : address.terms) {
    if (term.factor == expr || same(*term.factor, *expr)) {
      term.coefficient += coefficient;
      return;
    }
  }
  address.terms.push_back({coefficient, expr});
}

bool is_division_by(const Expr& expr, ir::BinaryOp op, int64_t& divisor) {
  if (expr.kind != Expr::Kind::binary) return false;
  const bool quotient = op == ir::BinaryOp::floor_div && expr.binary == ir::BinaryOp::div;
  if (expr.binary != op && !quotient) return false;
  if (expr.operands[1]->kind != Expr::Kind::constant) return false;
  divisor = expr.operands[1]->int_value;
  return divisor > 0;
}

// Merges c * K * (e / K) + c * (e % K) into c * e; true when something changed. Indices are never
// negative, so that truncating and flooring division agree.
bool merge_division(Address& address) {
  for (size_t i = 0; i < address.terms.size(); ++i) {
    int64_t divisor = 0;
    if (!is_division_by(*address.terms[i].factor, ir::BinaryOp::floor_div, divisor)) continue;
    for (size_t j = 0; j < address.terms.size(); ++j) {
      int64_t modulus = 0;
      const Expr& rest = *address.terms[j].factor;
      if (!is_division_by(rest, ir::BinaryOp::mod, modulus) || modulus != divisor) continue;
      const int64_t coefficient = address.terms[j].coefficient;
      if (address.terms[i].coefficient != coefficient * divisor) continue;
      const ExprPtr whole = rest.operands[0];
      if (!same(*whole, *address.terms[i].factor->operands[0])) continue;
      address.terms.erase(address.terms.begin() + static_cast<long>(std::max(i, j)));
      address.terms.erase(address.terms.begin() + static_cast<long>(std::min(i, j)));
      add_term(address, whole, coefficient);
      return true;
    }
  }
  return false;
}

}  // namespace

// Lines longer than 100 columns go on below, four blanks deeper; comments and pragmas stay whole.
void CodeWriter::line(std::string_view text) {
  size_t indent = static_cast<size_t>(level_) * 2;
  const size_t own = std::min(text.find_first_not_of(' '), text.size());
  const bool breakable = own < text.size() && text[own] != '#' && text.substr(own, 2) != "//";
  while (breakable && indent + text.size() > 100) {
    const size_t space = text.rfind(' ', 100 - indent);
    if (space == std::string_view::npos || space <= own + 4) break;
    text_.append(indent, ' ').append(text.substr(0, space)) += '\n';
    text = text.substr(space + 1);
    indent = static_cast<size_t>(level_) * 2 + own + 4;
  }
  if (!text.empty()) text_.append(indent, ' ').append(text);
  text_ += '\n';
}

void CodeWriter::lines(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    line(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

void CodeWriter::open(std::string_view head) {
  line(head.empty() ? std::string("{") : std::string(head) + " {");
  ++level_;
}

void CodeWriter::close(std::string_view tail) {
  KE_ASSERT(level_ > 0);
  --level_;
  line("}" + std::string(tail));
}

void CodeWriter::otherwise() {
  close(" else {");
  ++level_;
}

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return "double";
    case DType::float32:
      return "float";
    case DType::float16:
    case DType::bfloat16:
      return "uint16_t";
    case DType::int64:
      return "int64_t";
    case DType::int32:
      return "int32_t";
    case DType::int16:
      return "int16_t";
    case DType::int8:
      return "int8_t";
    case DType::uint8:
      return "uint8_t";
    case DType::boolean:
      return "bool";
  }
  KE_ASSERT(false);
}

std::string_view compute_type(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? "float" : storage_type(dtype);
}

std::string float_literal(DType dtype, double value) {
  const bool is_double = dtype == DType::float64;
  const std::string_view suffix = is_double ? "" : "f";
  if (std::isnan(value)) return is_double ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (!is_double) value = static_cast<float>(value);
  if (std::isinf(value)) {
    return fmt::format("{}__builtin_inf{}()", value < 0 ? "-" : "", suffix);
  }
  std::string text =
      is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + std::string(suffix);
}

namespace {

std::string integer_text(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::boolean:
      return value != 0 ? "true" : "false";
    case DType::uint8:
      return std::to_string(static_cast<uint8_t>(value));
    case DType::int8:
      return std::to_string(static_cast<int8_t>(value));
    case DType::int16:
      return std::to_string(static_cast<int16_t>(value));
    case DType::int32:
      return std::to_string(static_cast<int32_t>(value));
    case DType::int64:
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  return value == INT64_MIN ? "INT64_MIN" : std::to_string(value);
}

}  // namespace

std::string stored_literal(DType dtype, double value) {
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    return std::to_string(dtype == DType::float16
                              ? ir::half_bits(static_cast<float>(value))
                              : ir::bfloat_bits(static_cast<float>(value)));
  }
  if (is_floating(dtype)) return float_literal(dtype, value);
  return integer_text(dtype, static_cast<int64_t>(value));
}

std::string literal(DType dtype, const Expr& constant) {
  KE_ASSERT(constant.kind == Expr::Kind::constant);
  if (is_floating(dtype)) return float_literal(dtype, constant.float_value);
  const int64_t value = constant.int_value;
  if (dtype == DType::boolean) return value != 0 ? "true" : "false";
  if (value == INT64_MIN) return "INT64_MIN";
  if (dtype == DType::int32 && value == INT32_MIN) return "INT32_MIN";
  if (dtype == DType::int32) return fmt::format("{}", value);
  if (dtype == DType::int64) {
    const bool small = value >= INT32_MIN && value <= INT32_MAX;
    return small ? fmt::format("{}", value) : fmt::format("INT64_C({})", value);
  }
  return fmt::format("({}){}", storage_type(dtype), value);
}

std::string comment(std::string_view text) {
  constexpr size_t kColumns = 97;  // of words after "// "
  std::string result, current;
  const auto flush = [&] {
    result += current.empty() ? "//\n" : "// " + current + "\n";
    current.clear();
  };
  while (!text.empty()) {
    const size_t end = text.find_first_of(" \n");
    const std::string_view word = text.substr(0, end);
    if (!current.empty() && current.size() + 1 + word.size() > kColumns) flush();
    if (!word.empty()) current += (current.empty() ? "" : " ") + std::string(word);
    if (end == std::string_view::npos) break;
    if (text[end] == '\n') flush();
    text = text.substr(end + 1);
  }
  if (!current.empty()) flush();
  return result;
}

Address address_of(const ir::Tensor& tensor, const std::vector<ExprPtr>& indices) {
  // Extents are not known here; i / K * K + i % K is i for every i that is not negative.
  constexpr int64_t kUnknownExtent = int64_t{1} << 40;
  int axes = 0;
  for (const ExprPtr& index : indices) {
    walk(index, [&](const Expr& e) {
      if (e.kind == Expr::Kind::axis) axes = std::max(axes, e.axis + 1);
    });
  }
  const std::vector<int64_t> extents(static_cast<size_t>(axes), kUnknownExtent);
  Address address;
  add_term(address, ir::element_offset(tensor, indices, extents), 1);
  while (merge_division(address)) {
  }
  std::erase_if(address.terms, [](const Address::Term& t) { return t.coefficient == 0; });
  return address;
}

int64_t Address::coefficient_of_axis(int axis) const {
  for (const Term& term : terms) {
    if (term.factor->kind == Expr::Kind::axis && term.factor->axis == axis) {
      return term.coefficient;
    }
  }
  return 0;
}

bool Address::is_affine() const {
  for (const Term& term : terms) {
    if (term.factor->kind != Expr::Kind::axis) return false;
  }
  return true;
}

bool Address::depends_outside_affine(int axis) const {
  for (const Term& term : terms) {
    if (term.factor->kind != Expr::Kind::axis && depends_on_axis(*term.factor, axis)) return true;
  }
  return false;
}

bool is_keyword(std::string_view name) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), name) != std::end(kKeywords);
}

bool depends_on_axis(const Expr& expr, int axis) {
  if (expr.kind == Expr::Kind::axis) return expr.axis == axis;
  for (const ExprPtr& operand : expr.operands) {
    if (depends_on_axis(*operand, axis)) return true;
  }
  return false;
}

bool contains_load(const Expr& expr) {
  if (expr.kind == Expr::Kind::load) return true;
  for (const ExprPtr& operand : expr.operands) {
    if (contains_load(*operand)) return true;
  }
  return false;
}

}  // namespace ke::target
