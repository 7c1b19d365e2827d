// SPDX-License-Identifier: Apache-2.0
//
// The measured machine: ceilings that physical floors and the cost model use. Measured once by
// `doctor` (eval/profile) and cached with the machine's identity.
#pragma once

#include <string>

#include "base/json_fwd.hpp"
#include "base/result.hpp"

namespace ke {

struct MachineProfile {
  std::string cpu;                 // model name and feature summary: identity of the cache entry
  int32_t threads = 1;             // that kernels and baselines may use
  int32_t vector_bytes = 32;       // 64 with AVX-512, 32 with AVX2
  int64_t l1_bytes = 32 << 10;     // data, a core
  int64_t l2_bytes = 512 << 10;    // a core
  int64_t llc_bytes = 32 << 20;    // shared
  double flops_f32_single = 1e11;  // per second, one thread, multiply and add counted as two
  double flops_f32_all = 2e11;
  double bandwidth_single = 2e10;  // bytes read + written per second from DRAM, triad
  double bandwidth_all = 4e10;
  double bandwidth_llc_all = 1e11;  // bytes per second when the data lives in the last-level cache
};

Json encode(const MachineProfile& profile);
Result<MachineProfile> decode_machine_profile(const Json& json);

}  // namespace ke
