// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "propose/proposer.hpp"

namespace ke {

#define KE_PROPOSER(name) extern const ProposerInfo proposer_##name;
#include "proposers.inc"
#undef KE_PROPOSER

std::span<const ProposerInfo* const> all_proposers() {
#define KE_PROPOSER(name) &proposer_##name,
  static const std::array proposers = {
#include "proposers.inc"
  };
#undef KE_PROPOSER
  return proposers;
}

const ProposerInfo* find_proposer(std::string_view name) {
  const auto all = all_proposers();
  const auto found =
      std::ranges::find(all, name, [](const ProposerInfo* info) { return info->name; });
  return found == all.end() ? nullptr : *found;
}

}  // namespace ke
