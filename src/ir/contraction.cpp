// SPDX-License-Identifier: Apache-2.0
//
// Recognises sums of products that a matrix product computes: matrix products in any layout, and
// convolutions as implicit GEMM.
#include "ir/kernel_builder.hpp"

namespace ke::ir {
namespace {

bool is_product(const OpenStage& stage) {
  const Expr& body = *stage.body;
  const bool floating = body.dtype == DType::float32 || body.dtype == DType::float64;
  return stage.reduce == ReduceOp::sum && stage.scan < 0 && floating &&
         stage.accumulator == body.dtype && body.kind == Expr::Kind::binary &&
         body.binary == BinaryOp::mul;
}

}  // namespace

std::optional<Contraction> as_contraction(const OpenStage& stage) {
  if (!is_product(stage)) return std::nullopt;
  const Expr &a = *stage.body->operands[0], &b = *stage.body->operands[1];
  const int row_count = static_cast<int>(stage.parallel.size());
  for (int k = 0; k < static_cast<int>(stage.reduction.size()); ++k) {
    if (!uses_axis(a, row_count + k) || !uses_axis(b, row_count + k)) return std::nullopt;
  }
  Contraction result;
  for (int r = 0; r < row_count; ++r) {
    const bool in_a = uses_axis(a, r), in_b = uses_axis(b, r);
    (in_a == in_b ? result.batch : in_a ? result.m : result.n).push_back(r);
  }
  if (result.m.empty() || result.n.empty()) return std::nullopt;
  // n is the side that walks the innermost row, which is contiguous in the output.
  result.swapped = result.m.back() > result.n.back();
  if (result.swapped) std::swap(result.m, result.n);
  return result;
}

}  // namespace ke::ir
