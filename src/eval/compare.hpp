// SPDX-License-Identifier: Apache-2.0
//
// Compares one output of one call with the truth, element by element, in the judge's process after
// the candidate was stopped. What it finds is pooled over input sets by Budget (budget.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "domain/problem.hpp"
#include "kernelevolve/thread_pool.hpp"
#include "oracle/oracle.hpp"

namespace ke {

// What was seen over the graded elements of one output.
struct Comparison {
  int64_t elements = 0;
  int64_t graded = 0;        // finite truth, not marked to be ignored: these make rms and max
  int64_t ungraded = 0;      // marked to be ignored
  double sum_squares = 0;    // of |got - truth|, absolute
  double max_abs = 0;        // infinite when a finite truth met a non-finite value
  int64_t max_index = -1;    // row-major position of max_abs
  int64_t outside = 0;       // elements outside the tolerance, of the wrong kind or not equal
  double worst_units = 0;    // their largest |got - truth| / (atol + rtol |truth|)
  int64_t worst_index = -1;  // its position
};

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
