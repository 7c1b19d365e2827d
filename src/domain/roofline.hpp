// SPDX-License-Identifier: Apache-2.0
//
// The two sides of the physical floor of a problem: how long this machine needs to move its bytes
// once, and to do its arithmetic.
#pragma once

#include "domain/machine.hpp"
#include "domain/problem.hpp"

namespace ke {

struct Roofline {
  double bytes = 0;         // all inputs read and all outputs written, once
  double flops = 0;         // 0 when unknown
  double moving_ns = 0;     // bytes at the bandwidth of the memory they lie in
  double computing_ns = 0;  // flops at the float32 peak of all threads
};

// `cold`: the data comes from memory, else from the last-level cache.
Roofline roofline(const Problem& problem, const MachineProfile& machine, bool cold);

}  // namespace ke
