// SPDX-License-Identifier: Apache-2.0
//
// A device's memory, shared out among the searches of this user that run at the same time: whoever
// does not get what a problem needs waits, instead of failing in the middle of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.hpp"
#include "domain/limits.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "os/file_system.hpp"

namespace ke {

// Bytes of device memory that judging takes, roughly and rather too much than too little: slots to
// rotate through, what both baselines and a candidate return, truths, and what processes hold.
int64_t device_bytes_needed(const Problem& problem, const MachineProfile& device,
                            const Limits& limits);

// Parts of the memory, held until this goes or the process ends.
class DeviceMemoryShare {
 public:
  // Waits for `bytes` of `total`, at most all of it, in the order of asking. `path`: a file beside
  // which the parts' lock files are made; the same for all who share the device.
  static Result<DeviceMemoryShare> take(const std::filesystem::path& path, int64_t bytes,
                                        int64_t total);

  int parts() const { return static_cast<int>(held_.size()); }

 private:
  std::vector<os::FileLock> held_;
};

}  // namespace ke
