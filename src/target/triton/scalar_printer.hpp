// SPDX-License-Identifier: Apache-2.0
//
// Scalar expressions as statements over blocks of elements. Every axis is a block of indices, with
// a mask of those that exist; a block that depends on no axis is a scalar. Select is lazy to the
// IR: here both sides are computed, and what a side loads is masked by the condition.
//
// Indices are int32 unless `wide`; as a value, an axis is int64.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace ke::triton {

// Axes share a dimension of the tile (rows, inner), and with it a mask.
struct AxisBlock {
  std::string variable;
  int dimension = 0;
};

struct Tile {
  std::vector<std::string> masks;  // one a dimension; empty where all elements exist
  std::vector<std::string> zeros;  // one a dimension: a block that extends along it alone
};

class ScalarPrinter {
 public:
  ScalarPrinter(const ir::Program& program, std::map<ir::TensorId, std::string> pointers,
                std::string& out)
      : program_(program), pointers_(std::move(pointers)), out_(out), frames_(1) {}

  void set_axes(std::vector<AxisBlock> axes, Tile tile);
  void set_indent(int spaces) { indent_ = spaces; }
  // Loads of the tensor, at any indices, are this variable.
  void hold(ir::TensorId tensor, std::string text) { held_[tensor] = std::move(text); }

  std::string print(const ir::ExprPtr& expr);  // an atom
  // `zeros`: a block to store to where the indices depend on no axis; its first element counts.
  void store(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices, const std::string& value,
             const std::string& zeros);
  void line(const std::string& text);
  std::string fresh(std::string_view stem);
  std::string name(const std::string& text) { return named(text, "t"); }
  // The mask of the tile's dimensions that occur; empty when none does.
  std::string mask_of(const std::set<int>& dimensions) const;

  const std::string& why_not() const { return why_not_; }  // set when something has no form here

 private:
  struct Frame {
    std::map<const ir::Expr*, std::string> known;
    std::string guard;  // a condition, and the dimensions that it extends along
    std::set<int> dimensions;
  };

  std::string emit(const ir::ExprPtr& expr, bool as_index);
  std::string make(const ir::ExprPtr& expr, bool as_index);
  std::string make_load(const ir::Expr& expr);
  std::string make_select(const ir::Expr& expr, bool as_index);
  std::string make_cast(const ir::Expr& expr);
  std::string named(const std::string& text, std::string_view stem);
  std::string guard() const;
  std::string offset(ir::TensorId tensor, const std::vector<ir::ExprPtr>& indices);
  std::set<int> dimensions_of(const ir::Expr& expr) const;
  std::set<int> dimensions_of(const std::vector<ir::ExprPtr>& indices) const;

  const ir::Program& program_;
  std::map<ir::TensorId, std::string> pointers_, held_;
  std::string& out_;
  std::vector<AxisBlock> axes_;
  Tile tile_;
  int indent_ = 4;
  int next_ = 0;
  std::vector<Frame> frames_;
  std::map<std::string, std::string> names_;  // right-hand side -> variable
  std::vector<ir::ExprPtr> kept_;             // keeps the keys of the maps alive
  std::string why_not_;
};

std::string constant_text(const ir::Expr& constant);
std::string type_text(ir::DType dtype);    // "tl.float32", as stored
ir::DType compute_dtype(ir::DType dtype);  // float32 for the 16-bit floats

}  // namespace ke::triton
