// SPDX-License-Identifier: Apache-2.0
//
// The thread pool behind ke_context::parallel_for: persistent workers, fork and join, indices
// claimed dynamically. One header, standard C++20 alone, because exported modules carry it too.
//
// A parallel_for costs a microsecond or two while the workers are awake and never waits for a
// worker that did not start: a job is a door that workers enter while it is open; the caller closes
// it when no index is left and waits for those inside only. Idle workers spin for a few tens of
// microseconds, less when that was in vain, not at all when there are more threads than cores; then
// they sleep, so that nothing runs between calls.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace ke {

// parallel_for may be called from one thread at a time and must not be nested. Bodies must not
// throw.
class ThreadPool {
 public:
  using Body = void (*)(int64_t index, void* arg);

  // Starts num_threads - 1 workers; fewer when the system refuses more.
  explicit ThreadPool(int num_threads) {
    const int wanted = num_threads > 1 ? num_threads - 1 : 0;
    spin_max_ = num_threads > usable_cores() ? std::chrono::nanoseconds(0) : kSpinMax;
    workers_.reserve(static_cast<size_t>(wanted));
    for (int i = 0; i < wanted; ++i) {
      try {
        workers_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;
      }
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() {
    stopping_.store(true, std::memory_order_relaxed);
    bell_.fetch_add(1);
    bell_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // The caller included.
  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs body(i, arg) once for each i in [0, n); returns when all are done.
  void parallel_for(int64_t n, Body body, void* arg) noexcept {
    if (n <= 1 || workers_.empty()) {
      for (int64_t i = 0; i < n; ++i) body(i, arg);
      return;
    }
    body_ = body;
    arg_ = arg;
    count_ = n;
    const int64_t shares = int64_t{64} * num_threads();
    stride_ = n > shares ? n / shares : 1;
    next_.store(0, std::memory_order_relaxed);
    door_.store(kOpen, std::memory_order_release);
    bell_.fetch_add(1);
    if (n - 1 < static_cast<int64_t>(workers_.size())) {
      for (int64_t i = 1; i < n; ++i) bell_.notify_one();
    } else {
      bell_.notify_all();
    }
    claim_and_run();
    door_.fetch_and(~kOpen, std::memory_order_acq_rel);
    wait_until_empty();
  }

  // The same as ke_context::parallel_for wants it; pool is a ThreadPool.
  static void run(void* pool, int64_t n, Body body, void* arg) {
    static_cast<ThreadPool*>(pool)->parallel_for(n, body, arg);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds kSpinMax{40'000};
  static constexpr std::chrono::nanoseconds kSpinMin{1'000};
  static constexpr uint32_t kOpen = 1u << 31;  // the other bits count the workers inside

  static int usable_cores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
    return static_cast<int>(std::thread::hardware_concurrency());
  }

  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  void claim_and_run() {
    const int64_t n = count_, stride = stride_;
    const Body body = body_;
    void* const arg = arg_;
    for (;;) {
      const int64_t begin = next_.fetch_add(stride, std::memory_order_relaxed);
      if (begin >= n) return;
      const int64_t end = begin + stride < n ? begin + stride : n;
      for (int64_t i = begin; i < end; ++i) body(i, arg);
    }
  }

  bool enter() {
    uint32_t seen = door_.load(std::memory_order_relaxed);
    while (seen & kOpen) {
      if (door_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire)) return true;
    }
    return false;
  }

  void leave() {
    if (door_.fetch_sub(1, std::memory_order_acq_rel) == 1) door_.notify_all();
  }

  // The bodies still running end soon as a rule; a long one is waited for asleep.
  void wait_until_empty() {
    if (door_.load(std::memory_order_acquire) == 0) return;
    const Clock::time_point give_up = Clock::now() + spin_max_;
    do {
      for (int i = 0; i < 32; ++i) {
        if (door_.load(std::memory_order_acquire) == 0) return;
        relax();
      }
    } while (Clock::now() < give_up);
    for (uint32_t seen = door_.load(std::memory_order_acquire); seen != 0;
         seen = door_.load(std::memory_order_acquire)) {
      door_.wait(seen, std::memory_order_acquire);
    }
  }

  void work() {
    uint32_t heard = 0;
    std::chrono::nanoseconds spin = spin_max_;
    while (true) {
      wait_for_bell(heard, spin);
      heard = bell_.load(std::memory_order_acquire);
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (!enter()) continue;
      claim_and_run();
      leave();
    }
  }

  // Spinning pays when the next job comes within spin_max_; the time of each wait says whether it
  // would have.
  void wait_for_bell(uint32_t heard, std::chrono::nanoseconds& spin) {
    const Clock::time_point start = Clock::now();
    while (Clock::now() - start < spin) {
      for (int i = 0; i < 32; ++i) {
        if (bell_.load(std::memory_order_acquire) != heard) {
          spin = spin_max_;
          return;
        }
        relax();
      }
    }
    bell_.wait(heard, std::memory_order_acquire);
    const bool soon = Clock::now() - start < 2 * spin_max_;
    spin = soon ? spin_max_ : (spin / 2 > kSpinMin ? spin / 2 : kSpinMin);
    if (spin > spin_max_) spin = spin_max_;
  }

  std::chrono::nanoseconds spin_max_{0};
  Body body_ = nullptr;  // these four change only while the door is closed and nobody is inside
  void* arg_ = nullptr;
  int64_t count_ = 0;
  int64_t stride_ = 1;
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint32_t> door_{0};
  alignas(64) std::atomic<uint32_t> bell_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace ke
