// SPDX-License-Identifier: Apache-2.0
//
// Compares one output of one call with the truth, element by element, in the judge's process after
// the candidate was stopped. What it finds is pooled over input sets by Budget (budget.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "domain/comparison.hpp"
#include "domain/problem.hpp"
#include "kernelevolve/thread_pool.hpp"
#include "oracle/oracle.hpp"

namespace ke {

// `got` holds the output's elements, dense, in the spec's dtype. Floating outputs are compared with
// a float64 truth under its tolerance; the others exactly. The pool may be null.
Comparison compare_output(const TensorSpec& spec, std::span<const std::byte> got,
                          const OutputTruth& truth, ThreadPool* pool);

// "expected 1.5, got 2": one element as text, for a person. `index` is row-major.
std::string values_at(const TensorSpec& spec, std::span<const std::byte> got,
                      const OutputTruth& truth, int64_t index);

// How many elements hold nothing but the poison byte: probably never written.
int64_t count_poisoned(const TensorSpec& spec, std::span<const std::byte> got, std::byte poison);

// An element of a floating dtype as a double. Exact.
double half_to_double(uint16_t bits);
double bfloat_to_double(uint16_t bits);

}  // namespace ke
