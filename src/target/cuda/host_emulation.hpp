// SPDX-License-Identifier: Apache-2.0
//
// For tests: runs printed device code on the CPU. A source that includes this first compiles with
// g++ into a library whose ke_emulate launches one kernel: cluster after cluster (of one block
// unless the kernel says otherwise), a fiber for each thread, in an order that changes from one to
// the next. It ends the process with a sentence where a GPU would hang or race silently: a barrier
// that some threads never reach, a shuffle in a warp that threads have left, a write past the
// dynamic shared memory. Shared memory starts as NaN.
#pragma once

#define KE_HOST_EMULATION
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define threadIdx (ke_emulation::current->thread)
#define blockIdx (ke_emulation::current->block)
#define blockDim ke_emulation::block_extent
#define gridDim ke_emulation::grid_extent

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

// Keeps what a function must keep on this stack, and goes on where another one was left. (What the
// C library has for this asks the kernel twice each time.) x86-64 only, as the tests are.
extern "C" void ke_emulation_switch(void** left, void* entered);
asm(R"(
.text
ke_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

namespace ke_emulation {

inline constexpr size_t kStackBytes = 96 << 10;

struct Extent {
  uint32_t x, y, z;
};

enum class Waits { nothing, block, cluster, warp, barrier, over };

struct Copy {
  void* to;
  const void* from;
};

// What lies in the 8 bytes of a barrier in shared memory.
struct Barrier {
  uint16_t arrivals;  // of a phase
  uint16_t missing;
  uint32_t bytes : 31;  // expected and not there
  uint32_t parity : 1;  // of the phase that runs
};
static_assert(sizeof(Barrier) == sizeof(uint64_t));

struct BulkCopy {
  Copy copy;
  int bytes;
  Barrier* barrier;
};

// One warpgroup's product of tiles; each thread computes its own sums.
struct TileProduct {
  float* sums;
  uint64_t a, b;
  bool keep;
  float (*element)(uint16_t);
};

struct Fiber {
  void* left = nullptr;  // where on its stack it goes on
  Extent thread{}, block{};
  int index = 0;  // in its block
  int rank = 0;   // of its block in the cluster
  Waits waits = Waits::nothing;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  std::vector<std::vector<Copy>> copies{1};           // groups; the last one is open
  std::vector<std::vector<TileProduct>> products{1};  // likewise
  Barrier* barrier = nullptr;                         // it waits for
  uint32_t parity = 0;
};

inline Extent block_extent, grid_extent;
inline Fiber* current;
inline void* scheduler;
inline std::vector<Fiber> fibers;    // block after block of the cluster
inline std::vector<uint32_t> words;  // one a thread, for shuffles
inline std::vector<char> shared;     // likewise, a stride a block
inline size_t block_threads, shared_bytes, shared_stride;
inline std::vector<BulkCopy> bulk_copies;  // on their way
inline bool copies_late;                   // as late as a GPU may, or at once

inline constexpr int kWarp = 32;
inline constexpr size_t kCanaryBytes = 64;
inline constexpr char kCanary = 0x5a;

[[noreturn]] inline void end(const char* why) {
  const Extent block = current == nullptr ? Extent{} : current->block;
  fprintf(stderr, "host emulation, block %u %u: %s\n", block.x, block.y, why);
  abort();
}

inline void wait(Waits what) {
  current->waits = what;
  ke_emulation_switch(&current->left, scheduler);
}

inline std::pair<size_t, size_t> warp_of(const Fiber& fiber) {
  const size_t block = static_cast<size_t>(fiber.rank) * block_threads;
  const size_t first = block + static_cast<size_t>(fiber.index / kWarp * kWarp);
  return {first, std::min(first + kWarp, block + block_threads)};
}

// Lets the threads of [first, last) go on when all of them wait for the same.
inline bool release(size_t first, size_t last, Waits what) {
  for (size_t i = first; i < last; ++i) {
    if (fibers[i].waits != what) return false;
  }
  for (size_t i = first; i < last; ++i) fibers[i].waits = Waits::nothing;
  return true;
}

inline void end_phase(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.bytes > 0) return;
  barrier.missing = barrier.arrivals;
  barrier.parity ^= 1;
}

inline void perform(const BulkCopy& bulk) {
  memcpy(bulk.copy.to, bulk.copy.from, static_cast<size_t>(bulk.bytes));
  bulk.barrier->bytes -= static_cast<uint32_t>(bulk.bytes);
  end_phase(*bulk.barrier);
}

// Copies arrive when nobody has anything else to do.
inline bool release_waiters_at_barriers() {
  const std::vector<BulkCopy> arriving = std::exchange(bulk_copies, {});
  for (const BulkCopy& bulk : arriving) perform(bulk);
  bool released = false;
  for (Fiber& fiber : fibers) {
    if (fiber.waits != Waits::barrier || fiber.barrier->parity == fiber.parity) continue;
    fiber.waits = Waits::nothing;
    released = true;
  }
  return released;
}

inline bool release_any() {
  bool released = release(0, fibers.size(), Waits::cluster);
  for (size_t first = 0; first < fibers.size(); first += block_threads) {
    released |= release(first, first + block_threads, Waits::block);
  }
  if (released) return true;
  released = release_waiters_at_barriers();
  for (size_t first = 0; first < fibers.size(); first = warp_of(fibers[first]).second) {
    released |= release(first, warp_of(fibers[first]).second, Waits::warp);
  }
  return released;
}

inline void run_cluster(bool backwards) {
  const size_t count = fibers.size();
  copies_late = backwards;
  while (true) {
    bool ran = false, left = false;
    for (size_t i = 0; i < count; ++i) {
      Fiber& fiber = fibers[backwards ? count - 1 - i : i];
      left |= fiber.waits != Waits::over;
      if (fiber.waits != Waits::nothing) continue;
      current = &fiber;
      ke_emulation_switch(&scheduler, fiber.left);
      ran = true;
    }
    if (!left) return;
    if (!release_any() && !ran) {
      end("threads wait at a barrier or in a shuffle that others never reach");
    }
  }
}

using Kernel = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                        int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                        int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
inline constexpr int kArgumentsMax = 24;
inline Kernel kernel;
inline int64_t arguments[kArgumentsMax];

// More arguments than a kernel takes do no harm in this machine's calling convention.
inline void enter() {
  const int64_t* a = arguments;
  kernel(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
         a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]);
  wait(Waits::over);
}

// As if the fiber had been left right before enter(): six registers and a return address.
inline void* fresh_stack(char* stack) {
  const uintptr_t end = (reinterpret_cast<uintptr_t>(stack) + kStackBytes) & ~uintptr_t{15};
  auto* top = reinterpret_cast<uintptr_t*>(end) - 8;
  for (int i = 0; i < 8; ++i) top[i] = 0;
  top[6] = reinterpret_cast<uintptr_t>(&enter);
  return top;
}

inline char* shared_of(int rank) {
  return shared.data() + static_cast<size_t>(rank) * shared_stride;
}

inline void prepare_cluster() {
  const int blocks = static_cast<int>(fibers.size() / block_threads);
  for (int rank = 0; rank < blocks; ++rank) {
    memset(shared_of(rank), 0xff, shared_bytes);
    memset(shared_of(rank) + shared_bytes, kCanary, kCanaryBytes);
  }
  for (Fiber& fiber : fibers) {
    fiber.waits = Waits::nothing;
    fiber.left = fresh_stack(fiber.stack.get());
  }
}

inline void check_shared() {
  const int blocks = static_cast<int>(fibers.size() / block_threads);
  for (int rank = 0; rank < blocks; ++rank) {
    for (size_t i = 0; i < kCanaryBytes; ++i) {
      if (shared_of(rank)[shared_bytes + i] == kCanary) continue;
      end("a write past the end of dynamic shared memory");
    }
  }
}

// Of another block, at the place that the address has in this one.
inline uint32_t peer_word(const char* address, int rank) {
  const auto place = static_cast<size_t>(address - shared_of(current->rank));
  if (place + sizeof(uint32_t) > shared_bytes) end("a read past another block's shared memory");
  const size_t first = static_cast<size_t>(rank) * block_threads;
  for (size_t i = first; i < first + block_threads; ++i) {
    if (fibers[i].waits == Waits::over) end("a read of a block's memory that a thread has left");
  }
  uint32_t word;
  memcpy(&word, shared_of(rank) + place, sizeof word);
  return word;
}

// The word of the lane with this number.
inline uint32_t lane_word(uint32_t word, int lane) {
  const auto [first, last] = warp_of(*current);
  for (size_t i = first; i < last; ++i) {
    if (fibers[i].waits == Waits::over) end("a shuffle in a warp that a thread has left");
  }
  const size_t block = static_cast<size_t>(current->rank) * block_threads;
  words[block + static_cast<size_t>(current->index)] = word;
  wait(Waits::warp);
  const uint32_t other = words[first + static_cast<size_t>(lane)];
  wait(Waits::warp);
  return other;
}

// Performs what all groups but the latest `pending` copy: as late as a GPU may.
inline void arrive(size_t pending) {
  auto& groups = current->copies;
  while (groups.size() > pending + 1) {
    for (const Copy& copy : groups.front()) memcpy(copy.to, copy.from, 16);
    groups.erase(groups.begin());
  }
}

// Element `depth` of a row of a tile: as the hardware finds it, by the bits of its address.
inline uint16_t tile_element(uint64_t tile, int row, int depth) {
  uintptr_t place = tile << 4;
  place += static_cast<uintptr_t>(row * 128 + depth * 2);
  place ^= (place >> 7 & 7) << 4;
  uint16_t bits;
  memcpy(&bits, reinterpret_cast<const void*>(place), sizeof bits);
  return bits;
}

inline void multiply(const TileProduct& product) {
  const int lane = current->index % kWarp, warp = current->index % 128 / kWarp;
  float a[2][16], b[16];
  for (int half = 0; half < 2; ++half) {
    const int row = warp * 16 + lane / 4 + 8 * half;
    for (int k = 0; k < 16; ++k) a[half][k] = product.element(tile_element(product.a, row, k));
  }
  for (int column = 0; column < 128; ++column) {
    if (column % 8 / 2 != lane % 4) continue;
    for (int k = 0; k < 16; ++k) b[k] = product.element(tile_element(product.b, column, k));
    for (int half = 0; half < 2; ++half) {
      float& sum = product.sums[column / 8 * 4 + half * 2 + column % 2];
      float added = product.keep ? sum : 0;
      for (int k = 0; k < 16; ++k) added += a[half][k] * b[k];
      sum = added;
    }
  }
}

// Performs all groups of products but the latest `pending`, as late as a GPU may.
inline void finish_products(size_t pending) {
  auto& groups = current->products;
  while (groups.size() > pending + 1) {
    for (const TileProduct& product : groups.front()) multiply(product);
    groups.erase(groups.begin());
  }
}

}  // namespace ke_emulation

// Fibers for a cluster of `blocks`, with room for the shared memory of each.
namespace ke_emulation {
inline void make_cluster(size_t blocks) {
  constexpr size_t kAlignment = 16;
  shared_stride = (shared_bytes + kCanaryBytes + kAlignment - 1) / kAlignment * kAlignment;
  shared.resize(blocks * shared_stride);
  if (fibers.size() != blocks * block_threads) {
    fibers = std::vector<Fiber>(blocks * block_threads);
    words.assign(fibers.size(), 0);
  }
  for (size_t i = 0; i < fibers.size(); ++i) {
    const auto at = static_cast<uint32_t>(i % block_threads);
    fibers[i].index = static_cast<int>(at);
    fibers[i].rank = static_cast<int>(i / block_threads);
    fibers[i].thread = {at % block_extent.x, at / block_extent.x % block_extent.y,
                        at / block_extent.x / block_extent.y};
  }
}
}  // namespace ke_emulation

extern "C" inline __attribute__((used)) void ke_emulate(void* kernel, const int64_t* grid,
                                                        const int64_t* block, int64_t cluster,
                                                        int64_t shared_bytes,
                                                        const int64_t* arguments, int count) {
  using namespace ke_emulation;  // tidy: allow(using-namespace) because the macros name it anyway
  if (count > kArgumentsMax) end("more arguments than the emulation passes on");
  if (grid[0] % cluster != 0) end("a grid that is no multiple of the cluster");
  ke_emulation::kernel = reinterpret_cast<Kernel>(kernel);
  memcpy(ke_emulation::arguments, arguments, static_cast<size_t>(count) * sizeof *arguments);
  ke_emulation::shared_bytes = static_cast<size_t>(shared_bytes);
  const auto extent = [](const int64_t* of) {
    return Extent{static_cast<uint32_t>(of[0]), static_cast<uint32_t>(of[1]),
                  static_cast<uint32_t>(of[2])};
  };
  grid_extent = extent(grid);
  block_extent = extent(block);
  block_threads = static_cast<size_t>(block[0] * block[1] * block[2]);
  make_cluster(static_cast<size_t>(cluster));
  uint32_t number = 0;
  for (uint32_t z = 0; z < grid_extent.z; ++z) {
    for (uint32_t y = 0; y < grid_extent.y; ++y) {
      for (uint32_t x = 0; x < grid_extent.x; x += static_cast<uint32_t>(cluster)) {
        for (Fiber& fiber : fibers) fiber.block = {x + static_cast<uint32_t>(fiber.rank), y, z};
        prepare_cluster();
        run_cluster(++number % 2 == 0);
        check_shared();
      }
    }
  }
}

// --- What device.h leaves to the device ---------------------------------------------------------

inline void __syncthreads() { ke_emulation::wait(ke_emulation::Waits::block); }
inline void __syncwarp() { ke_emulation::wait(ke_emulation::Waits::warp); }
inline float __uint_as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }

inline char* ke_shared() { return ke_emulation::shared_of(ke_emulation::current->rank); }
inline float ke_load_f16(const uint16_t* p) {
  _Float16 half;
  memcpy(&half, p, sizeof half);
  return static_cast<float>(half);
}
inline uint16_t ke_bits_f16(float value) {
  const _Float16 half = static_cast<_Float16>(value);
  uint16_t bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}
inline uint32_t ke_shuffle_word(uint32_t word, int mask) {
  return ke_emulation::lane_word(word, ke_emulation::current->index % ke_emulation::kWarp ^ mask);
}
inline uint32_t ke_lane_word(uint32_t word, int lane) {
  return ke_emulation::lane_word(word, lane);
}
inline void ke_copy_16(void* to_shared, const void* from) {
  ke_emulation::current->copies.back().push_back({to_shared, from});
}
inline void ke_copy_16_if(bool exists, void* to_shared, const void* from) {
  alignas(16) static const char zeros[16] = {};
  ke_copy_16(to_shared, exists ? from : zeros);
}
inline void ke_copies_commit() { ke_emulation::current->copies.emplace_back(); }
template <int kPending>
inline void ke_copies_wait() {
  ke_emulation::arrive(kPending);
}

inline char* ke_shared_tiles() {
  const auto all = reinterpret_cast<uintptr_t>(ke_shared());
  return reinterpret_cast<char*>((all + 1023) & ~uintptr_t{1023});
}
inline void ke_barrier_make(uint64_t* barrier, int count) {
  const auto arrivals = static_cast<uint16_t>(count);
  *reinterpret_cast<ke_emulation::Barrier*>(barrier) = {arrivals, arrivals, 0, 0};
}
inline void ke_barriers_made() {}
inline void ke_barrier_expect(uint64_t* barrier, int bytes) {
  auto& meant = *reinterpret_cast<ke_emulation::Barrier*>(barrier);
  meant.bytes += static_cast<uint32_t>(bytes);
  --meant.missing;
  ke_emulation::end_phase(meant);
}
inline void ke_barrier_arrive(uint64_t* barrier) { ke_barrier_expect(barrier, 0); }
inline void ke_barrier_wait(uint64_t* barrier, int parity) {
  ke_emulation::current->barrier = reinterpret_cast<ke_emulation::Barrier*>(barrier);
  ke_emulation::current->parity = static_cast<uint32_t>(parity);
  ke_emulation::wait(ke_emulation::Waits::barrier);
}
inline void ke_bulk_copy(void* to_shared, const void* from, int bytes, uint64_t* barrier) {
  const ke_emulation::BulkCopy bulk{
      {to_shared, from}, bytes, reinterpret_cast<ke_emulation::Barrier*>(barrier)};
  if (ke_emulation::copies_late) {
    ke_emulation::bulk_copies.push_back(bulk);
  } else {
    ke_emulation::perform(bulk);
  }
}
inline void ke_written_for_products() {}
inline int ke_cluster_rank() { return ke_emulation::current->rank; }
inline void ke_cluster_sync() { ke_emulation::wait(ke_emulation::Waits::cluster); }
inline uint32_t ke_peer_word(const char* shared, int block) {
  return ke_emulation::peer_word(shared, block);
}
template <int kRegisters>
inline void ke_fewer_registers() {}
template <int kRegisters>
inline void ke_more_registers() {}
inline uint64_t ke_tile(const char* tile) { return reinterpret_cast<uintptr_t>(tile) >> 4; }
inline void ke_products_begin() {}
inline void ke_products_commit() { ke_emulation::current->products.emplace_back(); }
template <int kPending>
inline void ke_products_wait() {
  ke_emulation::finish_products(kPending);
  ke_emulation::wait(ke_emulation::Waits::warp);  // a warp goes on in step
}
inline void ke_product_f16(float (&sums)[64], uint64_t a, uint64_t b, int keep) {
  const auto element = [](uint16_t bits) { return ke_load_f16(&bits); };
  ke_emulation::current->products.back().push_back({sums, a, b, keep != 0, element});
}
inline void ke_product_bf16(float (&sums)[64], uint64_t a, uint64_t b, int keep) {
  const auto element = [](uint16_t bits) { return __uint_as_float(uint32_t{bits} << 16); };
  ke_emulation::current->products.back().push_back({sums, a, b, keep != 0, element});
}
inline float ke_rounded(float product) { return __builtin_assoc_barrier(product); }
inline double ke_rounded(double product) { return __builtin_assoc_barrier(product); }
