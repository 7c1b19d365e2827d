// SPDX-License-Identifier: Apache-2.0
//
// The targets that were built in; CMake writes targets.inc from the folders beside this file.
#include <array>

#include "target/target.hpp"

namespace ke {

#define KE_TARGET(name) extern const TargetInfo target_##name;
#include "targets.inc"
#undef KE_TARGET

std::span<const TargetInfo* const> all_targets() {
#define KE_TARGET(name) &target_##name,
  static constexpr std::array targets = {
#include "targets.inc"
  };
#undef KE_TARGET
  return targets;
}

const TargetInfo* find_target(std::string_view name) {
  for (const TargetInfo* target : all_targets()) {
    if (target->name == name) return target;
  }
  return nullptr;
}

}  // namespace ke
