// SPDX-License-Identifier: Apache-2.0
//
// Which GPU there is. Asked of NVIDIA's management library, which needs no context on the device:
// a process that has one could no longer be forked.
#pragma once

#include <string>

#include "base/result.hpp"

namespace ke::target {

struct Gpu {
  std::string name;                  // "NVIDIA H200"
  std::string driver;                // "580.159.04"
  int major = 0, minor = 0;          // compute capability
  std::string architecture() const;  // "sm_90a": with what only this generation has
};

// The first GPU. Errc::unavailable, in a sentence, when there is no driver or no device.
Result<Gpu> find_gpu();

}  // namespace ke::target
