// SPDX-License-Identifier: Apache-2.0
//
// The steps of realize(), shared with the fuser, which asks for one kernel at a time:
// inline -> drop axes of extent 1 -> align every stage with the kernel's rows -> number the axes
// rows first -> order a contraction's rows -> collapse axes that every access walks as one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "ir/plan.hpp"

namespace ke::ir {

// Who writes and who reads what, looked up instead of searched. The program must outlive it.
struct ProgramIndex {
  explicit ProgramIndex(const Program& program);

  const Program& program;
  std::vector<int> writer;      // a tensor: its stage, or -1
  std::vector<bool> live;       // a stage: whether an output depends on it
  std::vector<bool> is_output;  // a tensor: whether Program::outputs lists it
};

// Bodies with the stages that no kernel holds substituted into their consumers.
class Inliner {
 public:
  // inlined[s]: whether stage s has no kernel.
  Inliner(const ProgramIndex& index, std::vector<bool> inlined);

  struct Body {
    ExprPtr expr;           // over the stage's own axes
    std::set<int> sources;  // the stage and everything that was inlined into it
  };
  // Fails when a reduction would have to be inlined or the body grows out of bounds.
  Result<Body> body(int stage);

 private:
  Result<ExprPtr> expand(const ExprPtr& e, std::unordered_map<const Expr*, ExprPtr>& done,
                         std::set<int>& sources);
  Result<ExprPtr> expand_load(const ExprPtr& e, std::vector<ExprPtr> indices,
                              std::set<int>& sources);

  const ProgramIndex& index_;
  std::vector<bool> inlined_;
  std::vector<std::optional<Body>> done_;
};

// A stage on its way into a kernel, over axes of its own: parallel first, then reduction.
struct OpenStage {
  TensorId output;
  std::vector<Axis> parallel, reduction;
  ReduceOp reduce = ReduceOp::none;
  int scan = -1;  // a scan: its parallel axis, which is never a row
  DType accumulator = DType::float32;
  ExprPtr body;
  std::vector<ExprPtr> store;  // over the parallel axes
  // The inverse of store: each parallel axis as an expression of the output's indices, where
  // axis(d) stands for the index in dimension d.
  std::vector<ExprPtr> coordinates;
  std::vector<int> rows;  // row r of the kernel is parallel axis rows[r]; once aligned
  bool aligned = false;
  std::string origin;

  std::vector<int64_t> extents() const;
};

OpenStage open_stage(const Program& program, const Stage& stage, const Inliner::Body& body);

// Gives every stage its rows, rewriting the axes of stages that see them through a view. The rows
// are those of the first reduction, or of the first stage; those of a scan, which comes first, are
// all its axes but the one it runs along. Fails when a stage reads another one across rows.
Result<void> align(const Program& program, std::vector<OpenStage>& stages);

// Whether the stage (all of whose parallel axes are rows) is a sum of products of two factors that
// a matrix product can compute. Fills batch, m and n with the rows' numbers; `swapped` says that
// the second factor is the one with m.
struct Contraction {
  std::vector<int> batch, m, n;
  bool swapped = false;
};
std::optional<Contraction> as_contraction(const OpenStage& stage);

// Merges adjacent axes. Row axes are merged only with neighbours of the same class (row_class has
// one number a row).
void collapse(const Program& program, FusedKernel& kernel, const std::vector<int>& row_class);

// The fused kernel without name, reads, writes and internals.
Result<FusedKernel> build_kernel(const ProgramIndex& index, Inliner& inliner,
                                 const KernelPlan& plan);

bool uses_axis(const Expr& expr, int position);

}  // namespace ke::ir
