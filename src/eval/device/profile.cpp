// SPDX-License-Identifier: Apache-2.0
#include "eval/device/profile.hpp"

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/json.hpp"
#include "eval/timing_lock.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

std::filesystem::path file_of_device(const std::filesystem::path& cache, const DeviceFacts& facts) {
  const std::string key =
      fmt::format("{}\x1f{}\x1f{}", facts.name, facts.driver, facts.torch);
  return cache / fmt::format("device-{}.json", digest_of(key).short_hex());
}

// False where there is no such file, or none that can be believed.
bool read_rates(const std::filesystem::path& file, DeviceFacts& facts) {
  const Result<std::string> text = os::read_file(file, 1 << 16);
  const Result<Json> json = text ? parse_json(*text) : Result<Json>(text.error());
  if (!json || !json->is_object()) return false;
  const auto bandwidth = json->find("bandwidth"), flops = json->find("flops_f32");
  if (bandwidth == json->end() || flops == json->end()) return false;
  if (!bandwidth->is_number() || !flops->is_number()) return false;
  facts.bandwidth = bandwidth->get<double>();
  facts.flops_f32 = flops->get<double>();
  return facts.bandwidth > 0 && facts.flops_f32 > 0;
}

}  // namespace

Result<DeviceFacts> device_facts(DeviceBench& bench, const std::filesystem::path& cache,
                                 const std::filesystem::path& lock) {
  DeviceFacts facts = TRY(bench.facts(false));
  const std::filesystem::path file = file_of_device(cache, facts);
  if (read_rates(file, facts)) return facts;
  TimingLock turns(lock);
  const TimingLock::Turn turn = TRY(turns.take_turn());
  if (read_rates(file, facts)) return facts;  // measured by another process in the meantime
  facts = TRY(bench.facts(true));
  const Json rates{{"bandwidth", facts.bandwidth}, {"flops_f32", facts.flops_f32}};
  TRY(os::make_directories(cache));
  TRY(os::write_file_atomically(file, dump_json(rates)));
  return facts;
}

MachineProfile device_profile(const DeviceFacts& facts) {
  constexpr double kL2OverMemory = 2.5;  // of bandwidth; only what fits the L2 is measured by it
  MachineProfile profile;
  profile.cpu = facts.name;
  profile.threads = facts.multiprocessors;
  profile.vector_bytes = 64;
  profile.l1_bytes = 256 << 10;
  profile.l2_bytes = 256 << 10;
  profile.llc_bytes = facts.l2_bytes;
  profile.flops_f32_all = facts.flops_f32;
  profile.flops_f32_single = facts.flops_f32 / facts.multiprocessors;
  profile.bandwidth_all = facts.bandwidth;
  profile.bandwidth_single = facts.bandwidth / facts.multiprocessors;
  profile.bandwidth_llc_all = kL2OverMemory * facts.bandwidth;
  return profile;
}

}  // namespace ke
