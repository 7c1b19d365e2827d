// SPDX-License-Identifier: Apache-2.0
//
// While something is timed, nothing else of ours runs. Within this process builds register their
// process groups here and are stopped (SIGSTOP) for the time. Between processes judging goes by
// turns, through a lock file; whoever waits stops what it has running in the background.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/result.hpp"
#include "os/file_system.hpp"

namespace ke {

// Safe to use from many threads; timed by one at a time. Must outlive its Held and Turn objects.
class TimingLock {
 public:
  // `path`: the machine's device lock; empty: no turns between processes. `others` is told, from a
  // thread of the lock's own, when somebody else begins (true) and ends judging: background work
  // that is no registered group should then stop and go on.
  explicit TimingLock(std::filesystem::path path, std::function<void(bool)> others = {});
  ~TimingLock();

  // A group that must not run while timing; stopped at once if timing goes on.
  void add_group(pid_t group);
  void remove_group(pid_t group);

  // This process's turn to judge, until it goes.
  class Turn {
   public:
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&&) = delete;
    ~Turn();

   private:
    friend class TimingLock;
    Turn(TimingLock* owner, std::optional<os::FileLock> device);
    TimingLock* owner_;
    std::optional<os::FileLock> device_;
  };
  // Waits for the others' turns and shares to end.
  Result<Turn> take_turn();

  // Work that must not fall into anybody's turn, and may go on beside others' shares. Waits in the
  // order of asking, so that neither those who measure nor those who work wait for ever.
  using Share = std::optional<os::FileLock>;
  Result<Share> share();
  // Whether somebody has asked and not got it yet. Those who share should then make room soon.
  bool somebody_waits() const { return os::FileLock::is_held(queue_path()); }

  // Held: everything registered is stopped. Continues them when it goes.
  class Held {
   public:
    Held(Held&& other) noexcept;
    Held& operator=(Held&&) = delete;
    ~Held();

   private:
    friend class TimingLock;
    explicit Held(TimingLock* owner) : owner_(owner) {}
    TimingLock* owner_;
  };
  Held hold();

 private:
  void watch(const std::stop_token& stop);
  void set_others(bool judging);
  void set_held(bool held);
  void signal_groups();  // the mutex is held
  std::filesystem::path queue_path() const { return path_.string() + ".queue"; }

  std::filesystem::path path_;
  std::function<void(bool)> tell_;
  std::mutex mutex_;  // guards what follows
  std::set<pid_t> groups_;
  bool held_ = false, others_ = false, stopped_ = false;
  std::mutex telling_;  // so that the other side hears of changes in order
  std::atomic<bool> my_turn_ = false;
  std::condition_variable_any wake_;
  std::jthread watcher_;  // last
};

}  // namespace ke
