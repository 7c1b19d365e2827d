// SPDX-License-Identifier: Apache-2.0
//
// What is known of a device: measured once, kept beside the machine's profile.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "domain/machine.hpp"
#include "oracle/device_slots.hpp"

namespace ke {

// The device's facts with its rates, from a file below `cache` (a folder) where the same device,
// driver and PyTorch were measured before; measured otherwise, while nobody else uses the device:
// `lock` is the file of eval/timing_lock.hpp.
Result<DeviceFacts> device_facts(DeviceBench& bench, const std::filesystem::path& cache,
                                 const std::filesystem::path& lock);

// What roofs and rotation need to know of a device, in the terms of a machine: a multiprocessor is
// a thread, its caches are the first level, the device's L2 is the last. Rates as the oracle
// measured them.
MachineProfile device_profile(const DeviceFacts& facts);

}  // namespace ke
