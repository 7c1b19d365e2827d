// SPDX-License-Identifier: Apache-2.0
//
// Prints the body of a stage as C++ statements, for a vector of lanes along one axis or for one
// element. Subexpressions that do not depend on the lane axis are printed as scalars, apart, so
// that the caller can put them before the loop over lanes. Whatever has no vector form is printed
// as a loop over the lanes; every expression of ir/expr.hpp has a correct form.
//
//   VectorPrinter printer(context, 8, {{"m"}, {"n", /*lane=*/true}});
//   printer.hold(accumulator, {"acc[v]", true});         // loads of it print as that variable
//   Value value = printer.print(*body);                  // "t3", a f32x8
//   printer.store(tensor, indices, value);               // or use value.text
//   writer.lines(printer.invariant()); writer.open("for (…)"); writer.lines(printer.statements());
#pragma once

#include <map>
#include <string>
#include <vector>

#include "target/c_printer.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {

struct AxisBinding {
  std::string variable;  // an int64_t expression without side effects; lane 0's value on the lane
  bool lane = false;     // at most one axis; consecutive lanes are consecutive values
};

// A printed value. `text` is an identifier, a literal or a held variable: free to repeat.
struct Value {
  std::string text;
  ir::DType dtype = ir::DType::float32;
  bool vector = false;  // of the printer's lanes; else a scalar of the compute type
};

// A tensor element at hand: loads of the tensor print as this variable. 16-bit floats are held as
// float, vector booleans as an integer mask (0 or -1 in i32 lanes).
struct HeldValue {
  std::string variable;
  bool vector = false;
};

enum class StoreKind : uint8_t { plain, streaming };  // streaming needs an aligned address

class VectorPrinter {
 public:
  // lanes == 1 prints scalars only (no axis may be a lane then).
  VectorPrinter(PrintContext& context, int lanes, std::vector<AxisBinding> axes);

  VectorPrinter(const VectorPrinter&) = delete;
  VectorPrinter& operator=(const VectorPrinter&) = delete;

  void hold(ir::TensorId tensor, HeldValue value);

  // The value of `expr`, whose statements are appended to invariant() and statements().
  Value print(const ir::ExprPtr& expr);
  Value print_cast(const Value& value, ir::DType dtype);  // rounds where the type demands it
  Value as_vector(const Value& value);                    // broadcasts a scalar
  // The value as memory would hold it: no multiplication in it is fused with what uses it.
  static Value rounded(const Value& value);

  // Appends the store of a value (cast to the tensor's dtype) to tensor[indices].
  void store(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices, const Value& value,
             StoreKind kind = StoreKind::plain);

  // "x + (n * 64 + c) * 4096 + i": the address of tensor[indices] at lane 0.
  std::string address(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices);

  // What does not depend on the lane axis, and the rest, in order.
  const std::string& invariant() const { return invariant_.text(); }
  const std::string& statements() const { return statements_.text(); }

 private:
  // What is known inside one block of the printed code; the first frame is the outermost.
  struct Frame {
    std::map<const ir::Expr*, Value> known;
    std::map<std::string, std::string> names;  // right-hand side -> the variable that holds it
    std::string mask;                          // lanes that may be loaded; empty: all
  };

  Value emit(const ir::ExprPtr& expr);
  Value make(const ir::ExprPtr& expr, bool vector);
  Value make_axis(int axis, bool vector);
  Value make_load(const ir::Expr& expr, bool vector);
  Value make_vector_load(const ir::Expr& expr, const target::Address& address);
  Value make_select(const ir::Expr& expr, bool vector);
  Value make_branches(const ir::Expr& expr, const Value& condition, bool vector);
  Value make_masked_select(const ir::Expr& expr, const Value& condition);
  Value make_lane_loop(const ir::ExprPtr& expr);
  Value named(const Value& value, std::string_view stem);
  bool meets_row_value(const ir::Expr& expr, size_t k) const;
  Value in_scalar_mode(const Value& value) const;
  bool varies(const ir::Expr& expr);
  void count_uses(const ir::ExprPtr& expr);
  const Value* find(const ir::Expr* expr) const;
  bool loads_anew(const ir::Expr& expr) const;
  std::string offset_text(const target::Address& address);
  std::string axis_text(int axis) const;
  const std::string& mask() const { return frames_.back().mask; }

  PrintContext& context_;
  int lanes_;
  int lane_axis_ = -1;
  std::vector<AxisBinding> axes_;
  std::map<ir::TensorId, HeldValue> held_;
  std::map<const ir::Expr*, int> uses_;
  std::map<const ir::Expr*, bool> varies_;
  std::vector<ir::ExprPtr> kept_;  // keeps the keys of the maps alive
  std::vector<Frame> frames_;
  bool scalar_mode_ = false;  // inside a loop over single lanes
  target::CodeWriter invariant_, statements_;
  target::CodeWriter* sink_ = &statements_;
};

// "f32x8" for (float32, 8), "float" for one lane. The vector type a value of this dtype is held in
// (16-bit floats in f32, booleans in i32), with its helper key added to the context.
std::string vector_type(PrintContext& context, ir::DType dtype, int lanes);

}  // namespace ke::x86
