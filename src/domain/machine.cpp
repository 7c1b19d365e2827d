// SPDX-License-Identifier: Apache-2.0
//
// JSON form of the measured machine.
#include "domain/machine.hpp"

#include "base/json.hpp"

namespace ke {

Json encode(const MachineProfile& profile) {
  return Json{{"cpu", profile.cpu},
              {"threads", profile.threads},
              {"vector_bytes", profile.vector_bytes},
              {"l1_bytes", profile.l1_bytes},
              {"l2_bytes", profile.l2_bytes},
              {"llc_bytes", profile.llc_bytes},
              {"flops_f32_single", profile.flops_f32_single},
              {"flops_f32_all", profile.flops_f32_all},
              {"bandwidth_single", profile.bandwidth_single},
              {"bandwidth_all", profile.bandwidth_all},
              {"bandwidth_llc_all", profile.bandwidth_llc_all}};
}

Result<MachineProfile> decode_machine_profile(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a machine profile"));
  MachineProfile profile;
  profile.cpu = TRY(fields.get<std::string>("cpu"));
  profile.threads = TRY(fields.get<int32_t>("threads"));
  profile.vector_bytes = TRY(fields.get<int32_t>("vector_bytes"));
  profile.l1_bytes = TRY(fields.get<int64_t>("l1_bytes"));
  profile.l2_bytes = TRY(fields.get<int64_t>("l2_bytes"));
  profile.llc_bytes = TRY(fields.get<int64_t>("llc_bytes"));
  profile.flops_f32_single = TRY(fields.get<double>("flops_f32_single"));
  profile.flops_f32_all = TRY(fields.get<double>("flops_f32_all"));
  profile.bandwidth_single = TRY(fields.get<double>("bandwidth_single"));
  profile.bandwidth_all = TRY(fields.get<double>("bandwidth_all"));
  profile.bandwidth_llc_all = TRY(fields.get<double>("bandwidth_llc_all"));
  TRY(fields.finish());
  const bool possible = profile.threads >= 1 && profile.vector_bytes >= 4 && profile.l1_bytes > 0 &&
                        profile.l2_bytes > 0 && profile.llc_bytes > 0 &&
                        profile.flops_f32_single > 0 && profile.flops_f32_all > 0 &&
                        profile.bandwidth_single > 0 && profile.bandwidth_all > 0 &&
                        profile.bandwidth_llc_all > 0;
  if (!possible) return Error{Errc::invalid, "a machine profile holds a size or rate below one"};
  return profile;
}

}  // namespace ke
