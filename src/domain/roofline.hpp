// SPDX-License-Identifier: Apache-2.0
//
// The two sides of the physical floor of a problem: how long this machine needs to move its bytes
// once, and to do its arithmetic.
#pragma once

#include "domain/machine.hpp"
#include "domain/problem.hpp"

namespace ke {

struct Roofline {
  double bytes = 0;         // the inputs that some output needs read, and all outputs written, once
  double flops = 0;         // of the least form known; 0 when unknown
  double moving_ns = 0;     // bytes at the bandwidth of the memory they lie in
  double computing_ns = 0;  // flops at the float32 peak of all threads
};

// Of the inputs that some output depends on.
int64_t needed_input_bytes(const Problem& problem);

// Then weights have nothing to be combined with, and need not be read.
bool has_empty_argument(const Problem& problem);

// `cold`: the data comes from memory, else from the last-level cache.
Roofline roofline(const Problem& problem, const MachineProfile& machine, bool cold);

}  // namespace ke
