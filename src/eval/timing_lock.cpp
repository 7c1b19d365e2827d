// SPDX-License-Identifier: Apache-2.0
#include "eval/timing_lock.hpp"

#include <signal.h>

#include <utility>

#include "base/assert.hpp"

namespace ke {

void TimingLock::add_group(pid_t group) {
  const std::lock_guard guard(mutex_);
  groups_.insert(group);
  if (held_) ::kill(-group, SIGSTOP);
}

void TimingLock::remove_group(pid_t group) {
  const std::lock_guard guard(mutex_);
  groups_.erase(group);
}

Result<TimingLock::Held> TimingLock::hold() {
  std::optional<os::FileLock> device;
  if (!path_.empty()) device.emplace(TRY(os::FileLock::lock(path_).context("the device lock")));
  const std::lock_guard guard(mutex_);
  KE_ASSERT(!held_);
  held_ = true;
  for (pid_t group : groups_) ::kill(-group, SIGSTOP);
  return Held(this, std::move(device));
}

void TimingLock::release() {
  const std::lock_guard guard(mutex_);
  held_ = false;
  for (pid_t group : groups_) ::kill(-group, SIGCONT);
}

TimingLock::Held::Held(TimingLock* owner, std::optional<os::FileLock> device)
    : owner_(owner), device_(std::move(device)) {}

TimingLock::Held::Held(Held&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), device_(std::move(other.device_)) {}

TimingLock::Held::~Held() {
  if (owner_) owner_->release();
}

}  // namespace ke
