// SPDX-License-Identifier: Apache-2.0
#include "domain/kernel_profile.hpp"

#include "base/json.hpp"

namespace ke {

Json encode(const KernelProfile& p) {
  return Json{{"vector_instructions", or_null(p.vector_instructions)},
              {"scalar_instructions", or_null(p.scalar_instructions)},
              {"spills", or_null(p.spills)},
              {"cycles_per_iteration", or_null(p.cycles_per_iteration)},
              {"bottleneck", or_null(p.bottleneck)},
              {"function", p.function},
              {"hot_loop", p.hot_loop},
              {"compiler_remarks", p.compiler_remarks},
              {"missing", p.missing}};
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
  p.missing = TRY((fields.get<std::map<std::string, std::string>>("missing")));
  TRY(fields.finish());
  return p;
}

}  // namespace ke
