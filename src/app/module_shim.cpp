// SPDX-License-Identifier: Apache-2.0
//
// Exported beside kernel.cpp, built into one library with it: runs the kernel for callers that have
// no judge around them, with a thread pool and scratch memory that stay between calls.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

#include "kernelevolve/kernel.h"
#include "kernelevolve/thread_pool.hpp"

// Optional in a kernel.
extern "C" [[gnu::weak]] int64_t ke_scratch_bytes(void);
extern "C" [[gnu::weak]] int64_t ke_scratch_bytes_for(const ke_tensor* inputs, int32_t input_count);

namespace {

constexpr int64_t kAlignment = 64;

// What stays between calls. The pool is never destroyed: its threads may be asleep when the process
// ends, and a forked child has none of them and makes its own pool.
struct Resources {
  std::mutex mutex;  // one call at a time: the pool and the scratch memory are shared
  ke::ThreadPool* pool = nullptr;
  int pool_threads = 0;
  pid_t pool_owner = 0;
  void* scratch = nullptr;
  int64_t scratch_bytes = 0;

  void need_threads(int threads) {
    if (pool != nullptr && pool_threads == threads && pool_owner == getpid()) return;
    if (pool_owner == getpid()) delete pool;
    pool = new ke::ThreadPool(threads);
    pool_threads = threads;
    pool_owner = getpid();
  }

  bool need_scratch(int64_t bytes) {
    if (bytes <= scratch_bytes) return true;
    std::free(scratch);
    const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    scratch = std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
    scratch_bytes = scratch == nullptr ? 0 : rounded;
    return scratch != nullptr;
  }
};

Resources& resources() {
  static Resources* const shared = new Resources;  // outlives every exit handler
  return *shared;
}

}  // namespace

// Computes the outputs; num_threads at least 1. 0: done; -1: out of memory; -2: the kernel threw an
// exception; else what ke_launch returned.
extern "C" int ke_module_run(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
                             int32_t output_count, int32_t num_threads) {
  try {
    Resources& shared = resources();
    const std::lock_guard<std::mutex> lock(shared.mutex);
    shared.need_threads(num_threads < 1 ? 1 : num_threads);
    int64_t bytes = 0;
    if (ke_scratch_bytes_for != nullptr) {
      bytes = ke_scratch_bytes_for(inputs, input_count);
    } else if (ke_scratch_bytes != nullptr) {
      bytes = ke_scratch_bytes();
    }
    if (bytes < 0 || !shared.need_scratch(bytes)) return -1;
    ke_context context{};
    context.scratch = bytes > 0 ? shared.scratch : nullptr;
    context.scratch_bytes = bytes;
    context.num_threads = shared.pool->num_threads();
    context.parallel_for = &ke::ThreadPool::run;
    context.pool = shared.pool;
    return ke_launch(inputs, input_count, outputs, output_count, &context);
  } catch (...) {
    return -2;
  }
}
