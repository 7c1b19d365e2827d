// SPDX-License-Identifier: Apache-2.0
// tidy: allow(dead) because bench.py compiles it
//
// Calls a kernel by the kernel contract and times it, for bench.py (loaded through ctypes): a pool
// of two threads, the second of which spins briefly and then sleeps between parallel sections.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "kernelevolve/kernel.h"

namespace {

using Body = void (*)(int64_t, void*);

struct Section {
  std::atomic<int> generation{0}, finished{0};
  std::atomic<int64_t> next{0};
  int64_t count = 0, chunk = 1;
  Body body = nullptr;
  void* argument = nullptr;
  bool helper_started = false;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(chunk);
      if (begin >= count) return;
      const int64_t end = begin + chunk < count ? begin + chunk : count;
      for (int64_t i = begin; i < end; ++i) body(i, argument);
    }
  }
};

Section section;

void help() {
  int seen = 0;
  for (;;) {
    for (int spins = 0; section.generation.load() == seen; ++spins) {
      if (spins < 2000) {
        __builtin_ia32_pause();
      } else {
        syscall(SYS_futex, &section.generation, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
      }
    }
    seen = section.generation.load();
    section.work();
    section.finished.fetch_add(1);
  }
}

void parallel_for(void*, int64_t n, Body body, void* argument) {
  if (!section.helper_started) std::thread(help).detach();
  section.helper_started = true;
  section.count = n;
  section.chunk = n > 128 ? n / 64 : 1;
  section.body = body;
  section.argument = argument;
  section.next = 0;
  section.finished = 0;
  section.generation.fetch_add(1);
  syscall(SYS_futex, &section.generation, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  section.work();
  while (section.finished.load() < 1) __builtin_ia32_pause();
}

void one_thread(void*, int64_t n, Body body, void* argument) {
  for (int64_t i = 0; i < n; ++i) body(i, argument);
}

int64_t now_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

// Nanoseconds of `calls` calls, or -1 when one failed: wall time with two threads, processor time
// with one.
extern "C" int64_t bench_kernel(void* launch, const ke_tensor* inputs, int32_t input_count,
                                ke_tensor* outputs, int32_t output_count, void* scratch,
                                int64_t scratch_bytes, int32_t threads, int64_t calls) {
  ke_context context{
      scratch, scratch_bytes, threads, nullptr, threads > 1 ? parallel_for : one_thread, nullptr};
  const clockid_t clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
  const int64_t begin = now_ns(clock);
  for (int64_t i = 0; i < calls; ++i) {
    if (((decltype(&ke_launch))launch)(inputs, input_count, outputs, output_count, &context) != 0) {
      return -1;
    }
  }
  return now_ns(clock) - begin;
}
