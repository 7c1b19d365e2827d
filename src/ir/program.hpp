// SPDX-License-Identifier: Apache-2.0
//
// Level 2: tensor expressions. A Program is a list of stages over declared tensors; each stage
// writes one tensor, in one of three forms:
//
//   map:     out[p...] = body(p...)
//   reduce:  out[p...] = op over r... of body(p..., r...)
//   scan:    out[p..., s, q...] = op over t in [0, s] of body(p..., t, q...)
//
// Axes are numbered parallel first, then reduction; Expr::axis refers to that numbering. A stage's
// output is indexed by its parallel axes in order. keepdim and every view is index arithmetic in
// the consumer's loads. Invariants (checked by verify): SSA, topological order, loads in rank,
// operand dtypes equal, index expressions int64, shapes equal parallel extents.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/result.hpp"
#include "ir/expr.hpp"

namespace ke::ir {

enum class Role : uint8_t { input, constant, intermediate, output };

struct Tensor {
  std::string name;                // unique identifier, [a-z][a-z0-9_]*
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;    // in elements; contiguous unless an input says otherwise
  Role role = Role::intermediate;
  std::vector<double> values;      // Role::constant: row-major contents
  int64_t elements() const;
};

// Row-major strides in elements; extents of 0 count as 1.
std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape);

// The address of an element in elements from the tensor's first, simplified for axes with these
// extents: sum of strides * indices, where (i / K) * K + i % K is i again.
ExprPtr element_offset(const Tensor& tensor, const std::vector<ExprPtr>& indices,
                       const std::vector<int64_t>& extents);

struct Axis {
  std::string name;  // "m", "n", "k", "i0"…
  int64_t extent = 0;
  bool operator==(const Axis&) const = default;
};

// argmax/argmin yield int64, the row-major position over the reduction axes of the first extreme
// (NaN counts as the extreme, as in PyTorch). any/all yield boolean.
enum class ReduceOp : uint8_t { none, sum, product, maximum, minimum, argmax, argmin, any, all };

struct StageId {
  int index = -1;
  auto operator<=>(const StageId&) const = default;
};

struct Stage {
  TensorId output;
  std::vector<Axis> parallel;
  std::vector<Axis> reduction;
  ReduceOp reduce = ReduceOp::none;  // sum, product, maximum or minimum where it scans
  int scan = -1;                     // a scan: the parallel axis along which it runs
  // dtype the reduction accumulates in (body's dtype for maximum and the like). Targets may be
  // more exact than it, never less. The stage's result is cast to the output's dtype.
  DType accumulator = DType::float32;
  ExprPtr body;
  std::string origin;  // the ATen operation it came from, for comments: "aten.mm.default"

  int axis_count() const { return static_cast<int>(parallel.size() + reduction.size()); }
  bool is_map() const { return reduce == ReduceOp::none; }
  bool is_scan() const { return scan >= 0; }
};

struct Program {
  std::vector<Tensor> tensors;
  std::vector<Stage> stages;        // topological
  std::vector<TensorId> inputs;     // in the kernel contract's order (role input)
  // In the contract's order. A tensor may be listed twice; an entry may be an input (identity).
  std::vector<TensorId> outputs;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id.index)]; }
  const Stage& stage(StageId id) const { return stages[static_cast<size_t>(id.index)]; }
  // The stage that writes a tensor, or null for inputs and constants.
  const Stage* writer(TensorId id) const;
};

// --- Text form: parse(print(p)) is p ------------------------------------------------------------
std::string print(const Program& program);
Result<Program> parse_program(std::string_view text);

// The first broken invariant, as a sentence that names the stage.
Result<void> verify(const Program& program);
bool is_identifier(std::string_view name);  // [a-z][a-z0-9_]*

Digest digest_of(const Program& program);

}  // namespace ke::ir

template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::ir::Role>{
    "input", "constant", "intermediate", "output"};
template <>
inline constexpr std::array<std::string_view, 9> ke::kEnumNames<ke::ir::ReduceOp>{
    "none", "sum", "product", "maximum", "minimum", "argmax", "argmin", "any", "all"};
