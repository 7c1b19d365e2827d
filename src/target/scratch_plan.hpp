// SPDX-License-Identifier: Apache-2.0
//
// Where intermediates live in scratch, and what each kernel may use of it for itself.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "ir/plan.hpp"

namespace ke::target {

struct ScratchUser {
  const ir::FusedKernel* kernel = nullptr;
  int64_t own_bytes = 0;  // private to it, not kept for others
};

struct ScratchPlan {
  std::map<ir::TensorId, int64_t> offsets;  // of intermediates
  int64_t private_offset = 0;               // of every kernel's own scratch
  int64_t bytes = 0;
};

// First fit over the kernels that need each tensor, which run in this order. Every offset is a
// multiple of `alignment`.
ScratchPlan plan_scratch(const ir::Program& program, std::span<const ScratchUser> users,
                         int64_t alignment);

}  // namespace ke::target
