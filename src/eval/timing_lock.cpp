// SPDX-License-Identifier: Apache-2.0
#include "eval/timing_lock.hpp"

#include <signal.h>

#include <chrono>
#include <utility>

#include "base/assert.hpp"

namespace ke {
namespace {

// Short beside a judgement, which takes a tenth of a second or more; long enough to cost nothing.
constexpr std::chrono::milliseconds kGlance{5};

}  // namespace

TimingLock::TimingLock(std::filesystem::path path, std::function<void(bool)> others)
    : path_(std::move(path)), tell_(std::move(others)) {
  if (path_.empty()) return;
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

TimingLock::~TimingLock() {
  watcher_.request_stop();
  if (watcher_.joinable()) watcher_.join();
  set_others(false);
}

void TimingLock::add_group(pid_t group) {
  const std::lock_guard guard(mutex_);
  groups_.insert(group);
  if (stopped_) ::kill(-group, SIGSTOP);
}

void TimingLock::remove_group(pid_t group) {
  const std::lock_guard guard(mutex_);
  groups_.erase(group);
}

void TimingLock::signal_groups() {
  const bool stop = held_ || others_;
  if (stop == stopped_) return;
  stopped_ = stop;
  for (pid_t group : groups_) ::kill(-group, stop ? SIGSTOP : SIGCONT);
}

void TimingLock::set_held(bool held) {
  const std::lock_guard guard(mutex_);
  KE_ASSERT(held_ != held);
  held_ = held;
  signal_groups();
}

void TimingLock::set_others(bool judging) {
  const std::lock_guard in_order(telling_);
  {
    const std::lock_guard guard(mutex_);
    if (others_ == judging) return;
    others_ = judging;
    signal_groups();
  }
  if (tell_) tell_(judging);
}

// Looks at the lock now and then: there is no telling when another process takes it.
void TimingLock::watch(const std::stop_token& stop) {
  std::mutex nobody;
  while (!stop.stop_requested()) {
    std::unique_lock sleeping(nobody);
    wake_.wait_for(sleeping, stop, kGlance, [] { return false; });
    if (my_turn_ || stop.stop_requested()) continue;
    const bool held = os::FileLock::is_held(path_);
    if (!my_turn_) set_others(held);
    if (my_turn_) set_others(false);  // the turn came in between
  }
}

Result<TimingLock::Turn> TimingLock::take_turn() {
  std::optional<os::FileLock> device;
  if (!path_.empty()) {
    const os::FileLock queue = TRY(os::FileLock::lock(queue_path()).context("the device lock"));
    device.emplace(TRY(os::FileLock::lock(path_).context("the device lock")));
  }
  my_turn_ = true;
  set_others(false);
  return Turn(this, std::move(device));
}

Result<TimingLock::Share> TimingLock::share() {
  if (path_.empty()) return Share();
  const os::FileLock queue = TRY(os::FileLock::lock(queue_path()).context("the device lock"));
  return Share(TRY(os::FileLock::share(path_).context("the device lock")));
}

TimingLock::Turn::Turn(TimingLock* owner, std::optional<os::FileLock> device)
    : owner_(owner), device_(std::move(device)) {}

TimingLock::Turn::Turn(Turn&& other) noexcept
    : owner_(std::exchange(other.owner_, nullptr)), device_(std::move(other.device_)) {}

TimingLock::Turn::~Turn() {
  if (!owner_) return;
  device_.reset();
  owner_->my_turn_ = false;
}

TimingLock::Held TimingLock::hold() {
  set_held(true);
  return Held(this);
}

TimingLock::Held::Held(Held&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}

TimingLock::Held::~Held() {
  if (owner_) owner_->set_held(false);
}

}  // namespace ke
