// SPDX-License-Identifier: Apache-2.0
//
// A contraction in canonical form: rows [batch..., m, n] and one inner axis k, whatever number of
// axes the kernel has. Several axes that play one part are walked as a single flat one, and indices
// are rewritten in it (i = flat / extent, j = flat % extent), so that scheduling and printing see
// a plain, possibly batched, matrix product:
//
//   out[batch..., m, n] = epilogue(sum over k of a(batch..., m, k) * b(batch..., n, k))
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "ir/plan.hpp"

namespace ke::target {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// A factor that is one load, walked with fixed strides (in elements).
struct StridedOperand {
  ir::TensorId tensor;
  int64_t base = 0;
  std::vector<int64_t> batch;  // one a batch axis
  int64_t row = 0;             // along m of the left factor, along n of the right one
  int64_t depth = 0;           // along k
};

struct Operand {
  ir::ExprPtr value;                      // over the canonical axes
  std::optional<StridedOperand> strided;  // absent: a prologue, a gather, a conversion
};

struct ContractShape {
  std::vector<ir::Axis> batch;
  int64_t m = 1, n = 1, k = 1;
  Operand a, b;                          // b depends on n and is the one that fills vectors
  ir::DType dtype = ir::DType::float32;  // accumulated in, float32 or float64
  // The kernel's stages over the canonical axes: batch..., m, n. The first is the contraction
  // itself (its body is not meant to be used), the rest are the epilogue.
  std::vector<ir::FusedStage> stages;

  int m_axis() const { return static_cast<int>(batch.size()); }
  int n_axis() const { return m_axis() + 1; }
  int k_axis() const { return m_axis() + 2; }
  int64_t batches() const {
    int64_t count = 1;
    for (const ir::Axis& axis : batch) count *= axis.extent;
    return count;
  }
  bool is_empty() const { return batches() == 0 || m == 0 || n == 0; }
};

// Errc::unavailable, in a sentence, when the kernel is not a sum of products of this form.
Result<ContractShape> contract_shape(const ir::Program& program, const ir::FusedKernel& kernel);

}  // namespace ke::target
