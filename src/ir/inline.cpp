// SPDX-License-Identifier: Apache-2.0
//
// Inlining: a load of a tensor that no kernel writes becomes the body that computes it, at the
// load's indices. Values keep the rounding that the tensor would have given them.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "ir/kernel_builder.hpp"

namespace ke::ir {
namespace {

constexpr int64_t kNodesMax = 4096;  // of an inlined body, counted as a tree

class TreeSize {
 public:
  int64_t of(const Expr& e) {
    const auto found = sizes_.find(&e);
    if (found != sizes_.end()) return found->second;
    int64_t size = 1;
    for (const ExprPtr& operand : e.operands) size = std::min(size + of(*operand), kNodesMax + 1);
    sizes_.emplace(&e, size);
    return size;
  }

 private:
  std::unordered_map<const Expr*, int64_t> sizes_;
};

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The value as it would be after a store to a tensor of that dtype and a load from it.
ExprPtr stored_as(DType dtype, const ExprPtr& value) {
  const bool exact = value->kind == Expr::Kind::load || value->kind == Expr::Kind::cast ||
                     value->kind == Expr::Kind::constant;
  if (value->dtype == dtype && is_half(dtype) && !exact) {
    return cast(dtype, cast(DType::float32, value));
  }
  return cast(dtype, value);
}

}  // namespace

ProgramIndex::ProgramIndex(const Program& p)
    : program(p),
      writer(p.tensors.size(), -1),
      live(p.stages.size(), false),
      is_output(p.tensors.size(), false) {
  for (size_t i = 0; i < p.stages.size(); ++i) {
    writer[static_cast<size_t>(p.stages[i].output.index)] = static_cast<int>(i);
  }
  for (TensorId id : p.outputs) {
    is_output[static_cast<size_t>(id.index)] = true;
    const int stage = writer[static_cast<size_t>(id.index)];
    if (stage >= 0) live[static_cast<size_t>(stage)] = true;
  }
  for (size_t i = p.stages.size(); i-- > 0;) {
    if (!live[i]) continue;
    walk(p.stages[i].body, [&](const Expr& e) {
      if (e.kind != Expr::Kind::load) return;
      const int stage = writer[static_cast<size_t>(e.tensor.index)];
      if (stage >= 0) live[static_cast<size_t>(stage)] = true;
    });
  }
}

Inliner::Inliner(const ProgramIndex& index, std::vector<bool> inlined)
    : index_(index), inlined_(std::move(inlined)), done_(inlined_.size()) {
  KE_ASSERT(inlined_.size() == index.program.stages.size());
}

Result<Inliner::Body> Inliner::body(int stage) {
  auto& done = done_[static_cast<size_t>(stage)];
  if (done) return *done;
  const Stage& source = index_.program.stages[static_cast<size_t>(stage)];
  Body result;
  result.sources.insert(stage);
  std::unordered_map<const Expr*, ExprPtr> expanded;
  result.expr = TRY(expand(source.body, expanded, result.sources));
  std::vector<int64_t> extents;
  for (const Axis& a : source.parallel) extents.push_back(a.extent);
  for (const Axis& a : source.reduction) extents.push_back(a.extent);
  const Error too_large{Errc::invalid, fmt::format("stage {} grows too large when inlined",
                                                   index_.program.tensor(source.output).name)};
  if (result.sources.size() > 1 && TreeSize().of(*result.expr) > kNodesMax) return too_large;
  result.expr = simplify_index(result.expr, extents);
  if (result.sources.size() > 1 && TreeSize().of(*result.expr) > kNodesMax) return too_large;
  done = result;
  return result;
}

Result<ExprPtr> Inliner::expand(const ExprPtr& e, std::unordered_map<const Expr*, ExprPtr>& done,
                                std::set<int>& sources) {
  if (e->operands.empty() && e->kind != Expr::Kind::load) return e;
  const auto found = done.find(e.get());
  if (found != done.end()) return found->second;
  std::vector<ExprPtr> operands;
  bool changed = false;
  for (const ExprPtr& operand : e->operands) {
    operands.push_back(TRY(expand(operand, done, sources)));
    changed |= operands.back() != operand;
  }
  ExprPtr result = e;
  if (e->kind == Expr::Kind::load) {
    result = TRY(expand_load(e, std::move(operands), sources));
  } else if (changed) {
    result = with_operands(*e, std::move(operands));
  }
  done.emplace(e.get(), result);
  return result;
}

Result<ExprPtr> Inliner::expand_load(const ExprPtr& e, std::vector<ExprPtr> indices,
                                     std::set<int>& sources) {
  const int writer = index_.writer[static_cast<size_t>(e->tensor.index)];
  if (writer < 0 || !inlined_[static_cast<size_t>(writer)]) {
    return load(e->tensor, e->dtype, std::move(indices));
  }
  const Stage& source = index_.program.stages[static_cast<size_t>(writer)];
  if (!source.is_map()) {
    return Error{Errc::invalid, fmt::format("stage {} reduces and is in no kernel",
                                            index_.program.tensor(source.output).name)};
  }
  const Body inner = TRY(body(writer));
  sources.insert(inner.sources.begin(), inner.sources.end());
  return substitute_axes(stored_as(e->dtype, inner.expr), indices);
}

}  // namespace ke::ir
