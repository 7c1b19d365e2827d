// SPDX-License-Identifier: Apache-2.0
//
// Seeded random programs over everything the expression level can say, for property tests here and
// in targets: maps, broadcasts, views, reductions, scans, contractions, selects, casts, gathers,
// strided inputs; extents 0, 1, primes and powers of two. Every program passes verify().
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "ir/interpret.hpp"
#include "ir/program.hpp"

namespace ke::ir {

struct RandomProgramOptions {
  int stages_max = 8;
  int64_t iterations_max = 4096;  // of one stage
  bool zero_sizes = true;         // extents of 0, rarely
  bool half_types = true;         // float16 and bfloat16
  bool scans = true;
  bool unusual_functions = true;  // every unary and binary operation, else + - * max min exp tanh
};

Program random_program(Rng& rng, const RandomProgramOptions& options = {});

// One tensor's bytes an input, over the whole span of its strides. Floats are normal; with
// specials, some are NaN, infinite, zero or subnormal. Integers are small.
std::vector<TensorBytes> random_inputs(const Program& program, Rng& rng, bool specials = false);

}  // namespace ke::ir
