// SPDX-License-Identifier: Apache-2.0
//
// What every C-like dialect shares when sources are printed: indented lines, type names, literals,
// and scalar expressions as statements with common subexpressions named once. A dialect derives
// from ScalarPrinter and says how an element is loaded and what its functions are called.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/program.hpp"

namespace ke::target {

// Lines of source, indented by two spaces a level.
class CodeWriter {
 public:
  explicit CodeWriter(int level = 0) : level_(level) {}

  void line(std::string_view text);   // one line; empty text gives an empty line
  void lines(std::string_view text);  // several, each indented anew; keeps their own indentation
  void open(std::string_view head);   // "head {" and one level deeper; "" opens a bare block
  void close(std::string_view tail = "");  // "}tail"
  void otherwise();                        // "} else {" between open() and close()
  int level() const { return level_; }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int level_;
};

// The C type a tensor element is stored as ("float", "int64_t", "bool", "uint16_t" for the 16-bit
// floats) and the one it is computed in ("float" for those).
std::string_view storage_type(ir::DType dtype);
std::string_view compute_type(ir::DType dtype);

// A constant of the dtype's compute type: "1.5f", "INT64_MIN", "-(float)INFINITY" without headers.
std::string literal(ir::DType dtype, const ir::Expr& constant);
std::string float_literal(ir::DType dtype, double value);
// A value as memory holds it: 16-bit floats as their bits.
std::string stored_literal(ir::DType dtype, double value);

// "a comment of several words", broken into lines of at most 100 columns that start with "// ".
std::string comment(std::string_view text);

// The address of a load or store in elements from the tensor's first: base + sum of terms, where a
// term is a coefficient times an axis or an expression that is not affine. (i / K) * K + i % K is
// recognised as i.
struct Address {
  struct Term {
    int64_t coefficient = 0;
    ir::ExprPtr factor;
  };
  int64_t base = 0;
  std::vector<Term> terms;

  int64_t coefficient_of_axis(int axis) const;  // 0 when absent
  bool is_affine() const;                       // every factor is an axis
  bool depends_outside_affine(int axis) const;  // the axis occurs in a factor that is no axis
};
Address address_of(const ir::Tensor& tensor, const std::vector<ir::ExprPtr>& indices);

bool is_keyword(std::string_view name);  // of C++

bool depends_on_axis(const ir::Expr& expr, int axis);
bool contains_load(const ir::Expr& expr);

}  // namespace ke::target
