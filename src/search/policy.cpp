// SPDX-License-Identifier: Apache-2.0
#include "search/policy.hpp"

#include <algorithm>
#include <array>

namespace ke {

#define KE_POLICY(name) extern const PolicyInfo policy_##name;
#include "policies.inc"
#undef KE_POLICY

std::span<const PolicyInfo* const> all_policies() {
#define KE_POLICY(name) &policy_##name,
  static const std::array policies = {
#include "policies.inc"
  };
#undef KE_POLICY
  return policies;
}

const PolicyInfo* find_policy(std::string_view name) {
  const auto all = all_policies();
  const auto found =
      std::ranges::find(all, name, [](const PolicyInfo* info) { return info->name; });
  return found == all.end() ? nullptr : *found;
}

std::vector<int> Population::accepted() const {
  std::vector<int> positions;
  for (size_t i = 0; i < individuals.size(); ++i) {
    if (individuals[i].fitness) positions.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(positions, std::greater{},
                           [&](int i) { return *individuals[static_cast<size_t>(i)].fitness; });
  return positions;
}

std::optional<int> Population::best() const {
  const std::vector<int> ranked = accepted();
  return ranked.empty() ? std::optional<int>() : ranked.front();
}

std::vector<int> Population::fertile() const {
  std::vector<int> positions = accepted();
  std::erase_if(positions, [&](int i) { return individuals[static_cast<size_t>(i)].spent; });
  return positions;
}

Memory choose_memory(Rng& rng) {
  const int64_t draw = rng.below(8);
  return draw == 0   ? Memory::nothing
         : draw == 1 ? Memory::both
         : draw == 2 ? Memory::siblings
                     : Memory::parents;
}

}  // namespace ke
