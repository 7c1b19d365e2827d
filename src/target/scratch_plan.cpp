// SPDX-License-Identifier: Apache-2.0
#include "target/scratch_plan.hpp"

#include <algorithm>

namespace ke::target {
namespace {

struct Lifetime {
  size_t first = 0, last = 0;  // kernels
  int64_t bytes = 0;
};

int64_t aligned_to(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

std::map<ir::TensorId, Lifetime> lifetimes(const ir::Program& program,
                                           std::span<const ScratchUser> users, int64_t alignment) {
  std::map<ir::TensorId, Lifetime> result;
  for (size_t k = 0; k < users.size(); ++k) {
    const auto touch = [&](ir::TensorId id) {
      const ir::Tensor& tensor = program.tensor(id);
      if (tensor.role != ir::Role::intermediate) return;
      auto [entry, fresh] = result.try_emplace(id);
      const int64_t bytes = tensor.elements() * bytes_of(tensor.dtype);
      if (fresh) entry->second = {k, k, aligned_to(std::max<int64_t>(bytes, 1), alignment)};
      entry->second.last = k;
    };
    for (const ir::TensorId id : users[k].kernel->writes) touch(id);
    for (const ir::TensorId id : users[k].kernel->reads) touch(id);
  }
  return result;
}

}  // namespace

ScratchPlan plan_scratch(const ir::Program& program, std::span<const ScratchUser> users,
                         int64_t alignment) {
  ScratchPlan plan;
  const std::map<ir::TensorId, Lifetime> lives = lifetimes(program, users, alignment);
  for (const auto& [id, life] : lives) {
    int64_t offset = 0;
    bool moved = true;
    while (moved) {
      moved = false;
      for (const auto& [other, at] : plan.offsets) {
        const Lifetime& placed = lives.at(other);
        const bool together = life.first <= placed.last && placed.first <= life.last;
        if (together && offset < at + placed.bytes && at < offset + life.bytes) {
          offset = at + placed.bytes;
          moved = true;
        }
      }
    }
    plan.offsets[id] = offset;
    plan.private_offset = std::max(plan.private_offset, offset + life.bytes);
  }
  int64_t own = 0;
  for (const ScratchUser& user : users) {
    own = std::max(own, aligned_to(user.own_bytes, alignment));
  }
  plan.bytes = plan.private_offset + own;
  return plan;
}

}  // namespace ke::target
