// SPDX-License-Identifier: Apache-2.0
//
// Has the target's tools look at a candidate in a build room. Nothing is executed but the tools.
#pragma once

#include <string>

#include "domain/kernel_profile.hpp"
#include "domain/limits.hpp"
#include "eval/timing_lock.hpp"
#include "target/target.hpp"

namespace ke {

struct ProfilerOptions {
  const Target* target = nullptr;
  Limits limits;
  TimingLock* timing_lock = nullptr;
};

// A source that does not build has a profile without metrics. Errc::unavailable when the target has
// no profiler, Errc::refused when the source asks for what it may not.
Result<KernelProfile> profile_kernel(const ProfilerOptions& options, const std::string& source);

}  // namespace ke
