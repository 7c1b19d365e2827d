// SPDX-License-Identifier: Apache-2.0
#include "domain/kernel_profile.hpp"

#include "base/json.hpp"

namespace ke {

// Profiles of kernels that were not run are written as they were before there were counters.
Json encode(const KernelProfile& p) {
  Json json{{"vector_instructions", or_null(p.vector_instructions)},
              {"scalar_instructions", or_null(p.scalar_instructions)},
              {"spills", or_null(p.spills)},
              {"cycles_per_iteration", or_null(p.cycles_per_iteration)},
              {"bottleneck", or_null(p.bottleneck)},
              {"function", p.function},
              {"hot_loop", p.hot_loop},
              {"compiler_remarks", p.compiler_remarks},
              {"missing", p.missing}};
  if (!p.counters.empty()) json["counters"] = p.counters;
  return json;
}

Result<KernelProfile> decode_kernel_profile(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a kernel's profile"));
  KernelProfile p;
  p.vector_instructions = TRY(fields.get_optional<int64_t>("vector_instructions"));
  p.scalar_instructions = TRY(fields.get_optional<int64_t>("scalar_instructions"));
  p.spills = TRY(fields.get_optional<int64_t>("spills"));
  p.cycles_per_iteration = TRY(fields.get_optional<double>("cycles_per_iteration"));
  p.bottleneck = TRY(fields.get_optional<std::string>("bottleneck"));
  p.function = TRY(fields.get<std::string>("function"));
  p.hot_loop = TRY(fields.get<std::vector<std::string>>("hot_loop"));
  p.compiler_remarks = TRY(fields.get<std::vector<std::string>>("compiler_remarks"));
  p.counters = TRY((fields.get_or<std::map<std::string, double>>("counters", {})));
  p.missing = TRY((fields.get<std::map<std::string, std::string>>("missing")));
  TRY(fields.finish());
  return p;
}

void add(EventCounts counts, KernelProfile& profile) {
  profile.counters = std::move(counts.per_call);
  profile.missing.merge(counts.missing);
}

}  // namespace ke
