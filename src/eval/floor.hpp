// SPDX-License-Identifier: Apache-2.0
//
// What the hardware permits (DESIGN D4). The floor is advice: a kernel near it is done. Only what
// is impossible rejects: less time than storing the outputs, and reading the inputs where all of
// them must be read, takes at the fastest level that can hold them.
#pragma once

#include <cstdint>

#include "domain/machine.hpp"
#include "domain/problem.hpp"

namespace ke {

// max(bytes / bandwidth, minimal flops / rate) of one call whose data comes from memory (`cold`) or
// from the last-level cache; dead inputs don't count. At least 1.
int64_t physical_floor_ns(const Problem& problem, const MachineProfile& machine, bool cold);

// A time that no kernel of this problem can have on this machine, however clever. 0: none known.
int64_t impossible_below_ns(const Problem& problem, const MachineProfile& machine, bool cold);

// Bytes that every right kernel must move: all outputs, and the inputs that they depend on, unless
// an operation of the graph picks from its operands by position or index (then some input may never
// be needed).
int64_t bytes_that_must_move(const Problem& problem);

}  // namespace ke
