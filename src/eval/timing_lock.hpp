// SPDX-License-Identifier: Apache-2.0
//
// While something is timed, nothing else of ours runs: builds register their process groups here
// and are stopped (SIGSTOP) for the time; a lock file keeps other searches on the machine from
// timing at the same moment.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "base/result.hpp"
#include "os/file_system.hpp"

namespace ke {

// Safe to use from many threads; timed by one at a time. Must outlive its Held objects.
class TimingLock {
 public:
  // `path`: the machine's device lock; empty: no lock between processes.
  explicit TimingLock(std::filesystem::path path) : path_(std::move(path)) {}

  // A group that must not run while timing; stopped at once if timing goes on.
  void add_group(pid_t group);
  void remove_group(pid_t group);

  // Held: everything registered is stopped. Continues them when it goes.
  class Held {
   public:
    Held(Held&& other) noexcept;
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    friend class TimingLock;
    Held(TimingLock* owner, std::optional<os::FileLock> device);
    TimingLock* owner_;
    std::optional<os::FileLock> device_;
  };
  // Waits for other searches' timing to end.
  Result<Held> hold();

 private:
  void release();
  std::filesystem::path path_;
  std::mutex mutex_;
  std::set<pid_t> groups_;
  bool held_ = false;
};

}  // namespace ke
