// SPDX-License-Identifier: Apache-2.0
//
// Measures the machine: arithmetic peak, memory bandwidth, cache sizes. Floors and cost models are
// computed from it. About two seconds, once; the result is kept with the machine's identity.
#pragma once

#include <filesystem>

#include "domain/machine.hpp"

namespace ke {

// Measures and keeps the result below `cache` (a folder, created when absent).
Result<MachineProfile> measure_profile(const std::filesystem::path& cache, int32_t threads);

// The kept profile of this CPU, thread count and harness; measured when there is none.
Result<MachineProfile> load_or_measure_profile(const std::filesystem::path& cache, int32_t threads);

}  // namespace ke
