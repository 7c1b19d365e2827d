// SPDX-License-Identifier: Apache-2.0
//
// What comparing one output of one call with the truth gives, wherever that was done: by the judge
// (eval/compare.hpp), or by the oracle where the output lies (py/kernelevolve/comparison.py).
#pragma once

#include <cstdint>

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

}  // namespace ke
