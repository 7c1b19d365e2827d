// SPDX-License-Identifier: Apache-2.0
//
// What two calls of one kernel with the same inputs may differ by when their bits need not agree
// (Determinism::budget) and no truth is known: each may be off by the error budget, so twice that.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "domain/evaluation.hpp"
#include "domain/problem.hpp"
#include "kernelevolve/thread_pool.hpp"
#include "oracle/oracle.hpp"

namespace ke {

// How far one call's output may be from the truth.
struct Closeness {
  double atol = 0, rtol = 0;
  bool any_non_finite_kind = false;
  // Relative to the truth's rms; absent: the tolerance alone counts.
  std::optional<double> rms, max;
  int64_t ungraded = 0;  // elements where PyTorch itself misses the tolerance
};

Closeness closeness_of(const OutputTruth& truth, const OutputError& error, Precision precision);

// Whether two calls' output, dense in the spec's dtype, is close enough. What is not floating is
// compared bit for bit. The pool may be null.
Result<bool> agree(const TensorSpec& spec, std::span<const std::byte> one,
                   std::span<const std::byte> other, const Closeness& each, ThreadPool* pool);

}  // namespace ke
