// SPDX-License-Identifier: Apache-2.0
#include "eval/device/memory_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "eval/device/sets.hpp"
#include "eval/sets.hpp"

namespace ke {
namespace {

constexpr int kParts = 32;
constexpr std::chrono::milliseconds kLookAgain{20};
// Contexts of the oracle, of torch.compile and of a launcher, with what libraries keep.
constexpr int64_t kProcessesBytes = int64_t{4} << 30;
constexpr int64_t kDoubles = 4;  // an input in float64 weighs two, and what is made of it as much
constexpr int64_t kResultsPerSlot = 4;  // the slot's, the candidate's, and those of two baselines

Result<std::optional<os::FileLock>> try_part(const std::filesystem::path& path, int part) {
  Result<os::FileLock> lock =
      os::FileLock::try_lock(fmt::format("{}.memory{}", path.string(), part));
  if (lock) return std::optional(std::move(*lock));
  if (lock.error().code == Errc::conflict) return std::optional<os::FileLock>();
  return lock.error();
}

}  // namespace

int64_t device_bytes_needed(const Problem& problem, const MachineProfile& device,
                            const Limits& limits) {
  const int64_t slots = device::timing_slots(problem, device, limits);
  const int64_t in = problem.input_bytes(), out = problem.output_bytes();
  const int64_t truth = truth_bytes(problem);
  const int64_t contents = kCheckedSetCount * (in + truth);
  const int64_t computing = 2 * truth + kDoubles * in;  // one truth, in float64
  return kProcessesBytes + slots * (in + kResultsPerSlot * out) + contents + computing;
}

Result<DeviceMemoryShare> DeviceMemoryShare::take(const std::filesystem::path& path, int64_t bytes,
                                                  int64_t total) {
  const int64_t part_bytes = std::max<int64_t>(1, total / kParts);
  const auto wanted =
      static_cast<size_t>(std::clamp<int64_t>((bytes + part_bytes - 1) / part_bytes, 1, kParts));
  const os::FileLock queue =
      TRY(os::FileLock::lock(path.string() + ".memory").context("the device's memory"));
  DeviceMemoryShare share;
  std::vector<bool> mine(kParts, false);
  while (true) {
    for (int part = 0; part < kParts && share.held_.size() < wanted; ++part) {
      if (mine[static_cast<size_t>(part)]) continue;
      std::optional<os::FileLock> lock =
          TRY(try_part(path, part).context("the device's memory"));
      if (!lock) continue;
      share.held_.push_back(std::move(*lock));
      mine[static_cast<size_t>(part)] = true;
    }
    if (share.held_.size() == wanted) return share;
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace ke
