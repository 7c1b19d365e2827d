// SPDX-License-Identifier: Apache-2.0
//
// What lowering rules share: the program under construction and where each graph value lives, which
// is an expression over the value's own indices ("place"). So views, expansions and constants cost
// no stage: they rewrite the indices of their consumer.
//
// Malformed graphs (shapes that don't fit, arguments of a wrong kind) become Errors, never reads
// out of range: the graph comes from another process.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ir/graph.hpp"
#include "ir/lower/lower.hpp"
#include "ir/lower/shapes.hpp"
#include "ir/program.hpp"

namespace ke::ir {

// Where a value lives: its element at index i0, i1, … (axis(d) stands for index d).
struct Place {
  ExprPtr element;
  // Set when the value's row-major contents are exactly this tensor's: then a reshape only regroups
  // the tensor's indices, and a graph output needs no copy.
  std::optional<TensorId> whole;
};

// A stage to add; its output tensor is new, contiguous and has the parallel extents as shape.
struct NewStage {
  std::string name;  // of the tensor; made unique
  DType dtype = DType::float32;
  std::vector<Axis> parallel;
  std::vector<Axis> reduction = {};
  ReduceOp reduce = ReduceOp::none;
  int scan = -1;  // a scan: the parallel axis along which it runs
  DType accumulator = DType::float32;
  ExprPtr body;  // a map's is cast to dtype
};

class LoweringContext {
 public:
  // Declares the inputs and constants of the graph, which must outlive the context.
  explicit LoweringContext(const Graph& graph);

  const Graph& graph() const { return graph_; }
  const Value& value(ValueId id) const { return graph_.values[static_cast<size_t>(id.index)]; }

  // --- Reading ----------------------------------------------------------------------------------
  ExprPtr read(ValueId id, const Indices& indices) const;  // one index a dimension
  // The element that PyTorch's broadcasting pairs with index axis(0), axis(1)… of `shape`; with
  // indices given, with those instead. Errc::invalid when the value does not broadcast to it.
  Result<ExprPtr> read_broadcast(ValueId id, const Shape& shape) const;
  Result<ExprPtr> read_broadcast(ValueId id, const Shape& shape, const Indices& indices) const;
  std::optional<TensorId> whole(ValueId id) const;
  const Shape& shape_of(TensorId id) const { return program_.tensor(id).shape; }

  // --- Results ----------------------------------------------------------------------------------
  // Says where a result lives. The value's declared dtype and shape are the element's.
  void place(ValueId result, Place place);
  // A map stage over the result's shape; body is over axis(0), axis(1)… and cast to its dtype.
  void map(ValueId result, ExprPtr body);
  TensorId add_stage(NewStage stage);
  // load of the tensor at axes 0, 1, … of its own shape
  ExprPtr load_at(TensorId tensor, Indices indices) const;

  // --- Used by lower() --------------------------------------------------------------------------
  void begin(const Node& node) { origin_ = node.op; }
  // Errc::unavailable for the first argument or graph output that no rule gave a place: a result
  // that rules leave out (an operation's rarely used second output) only matters when it is used.
  Result<void> require_arguments(const Node& node) const;
  Result<void> require_outputs() const;
  // Marks outputs (copying where a view or an input is returned) and drops what nothing needs.
  Program finish();

 private:
  Result<void> require_placed(const Arg& arg) const;
  std::string unique_name(std::string_view wanted);
  TensorId declare(std::string name, DType dtype, Shape shape, Shape strides, Role role);

  const Graph& graph_;
  Program program_;
  std::vector<std::optional<Place>> places_;  // one a graph value
  std::set<std::string> names_;
  std::string origin_;
};

}  // namespace ke::ir
