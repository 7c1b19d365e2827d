// SPDX-License-Identifier: Apache-2.0
//
// Prints scalar expressions as statements of device code, for one element a thread. Subexpressions
// that are used twice get a name. A choice whose sides load from memory becomes if and else, since
// the side that is not chosen may be out of range.
//
// Indices are int64 to the IR. Here they are int wherever the extents show that this is enough, and
// division of what cannot be negative is the plain one: both cost a GPU dearly otherwise.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "target/c_printer.hpp"
#include "target/cuda/skeleton.hpp"

namespace ke::cuda {

// `variable` is an int, or int64_t where the extent needs it, free of side effects.
struct AxisBinding {
  std::string variable;
  int64_t extent = 1;
};

struct Value {
  std::string text;  // an atom, or in parentheses
  ir::DType dtype = ir::DType::float32;
  bool narrow = false;  // an int64 to the IR, an int here
};

struct Range {
  int64_t low = 0, high = 0;
  bool fits_int() const { return low >= INT32_MIN && high <= INT32_MAX; }
};

// The least and greatest value of an int64 expression over the axes; none when it is not known.
std::optional<Range> range_of(const ir::Expr& expr, const std::vector<AxisBinding>& axes);

// A loaded element at hand: in a variable or an array element, as the tensor stores it.
struct HeldLoad {
  ir::ExprPtr load;
  std::string text;
};

class ScalarPrinter {
 public:
  ScalarPrinter(PrintContext& context, target::CodeWriter& out, std::vector<AxisBinding> axes);

  ScalarPrinter(const ScalarPrinter&) = delete;
  ScalarPrinter& operator=(const ScalarPrinter&) = delete;

  // Loads of the tensor, at any indices, are this text of the compute type.
  void hold(ir::TensorId tensor, std::string text) { held_[tensor] = std::move(text); }
  // This very load is that text of the storage type.
  void hold(HeldLoad held) { held_loads_.push_back(std::move(held)); }

  // The value, whose statements have been written; an atom.
  Value print(const ir::ExprPtr& expr);
  Value print_cast(const Value& value, ir::DType dtype);  // rounds where the type demands it
  // The value as the tensor's element is stored: a cast, or the bits of a 16-bit float.
  std::string stored(const Value& value, ir::DType dtype);
  void store(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices, const Value& value);
  // "i * 64 + 3", in elements.
  std::string offset(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices);

 private:
  struct Frame {
    std::map<const ir::Expr*, Value> known;
    std::map<std::string, std::string> names;  // right-hand side -> the variable that holds it
  };

  Value emit(const ir::ExprPtr& expr);
  Value make(const ir::ExprPtr& expr);
  Value make_load(const ir::Expr& expr);
  Value make_select(const ir::Expr& expr);
  Value make_binary(const ir::Expr& expr);
  Value named(const Value& value, std::string_view stem);
  bool meets_row_value(const ir::Expr& expr, size_t k) const;
  const Value* find(const ir::Expr* expr) const;
  void count_uses(const ir::ExprPtr& expr);

  PrintContext& context_;
  target::CodeWriter& out_;
  std::vector<AxisBinding> axes_;
  std::map<ir::TensorId, std::string> held_;
  std::vector<HeldLoad> held_loads_;
  std::map<const ir::Expr*, int> uses_;
  std::vector<ir::ExprPtr> kept_;  // keeps the keys of the maps alive
  std::vector<Frame> frames_;
};

// "-1.5f", "ke_infinity()" and the like.
std::string literal(ir::DType dtype, const ir::Expr& constant);
std::string float_literal(ir::DType dtype, double value);

// The C type of a value: int for narrow ones.
std::string type_of(const Value& value);

}  // namespace ke::cuda
