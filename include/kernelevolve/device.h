/* SPDX-License-Identifier: Apache-2.0
 *
 * What printed device code uses beyond the language: fixed-width types, 16-bit floats without
 * vendor headers, wide loads and stores, joins of values across threads, and the operations of
 * tensor expressions with the meaning they have there (NaN in maximum, Python's division). For
 * NVRTC and nvcc; a host emulation for tests replaces the few things marked as the device's.
 */
#ifndef KERNELEVOLVE_DEVICE_H_
#define KERNELEVOLVE_DEVICE_H_

#include <stdint.h>

#define KE_DEVICE static __device__ __forceinline__

/* --- The device's own ------------------------------------------------------------------------ */

#ifndef KE_HOST_EMULATION

/* Dynamic shared memory of the block, 16-byte aligned. */
KE_DEVICE char* ke_shared() {
  extern __shared__ uint4 ke_shared_words[];
  return (char*)ke_shared_words;
}

KE_DEVICE float ke_load_f16(const uint16_t* p) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(*p));
  return value;
}

KE_DEVICE uint16_t ke_bits_f16(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/* A word of another lane of the warp; every lane of the warp takes part. */
KE_DEVICE uint32_t ke_shuffle_word(uint32_t word, int mask) {
  return __shfl_xor_sync(0xffffffffu, word, mask);
}

/* Of the lane with this number. */
KE_DEVICE uint32_t ke_lane_word(uint32_t word, int lane) {
  return __shfl_sync(0xffffffffu, word, lane);
}

/* Copies 16 bytes to shared memory in the background; ke_copies_wait<n>() returns when all but the
 * latest n groups of this thread have arrived. Other threads see them behind a barrier. */
KE_DEVICE void ke_copy_16(void* to_shared, const void* from) {
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(to_shared);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
/* Likewise, or 16 bytes of zero. */
KE_DEVICE void ke_copy_16_if(bool exists, void* to_shared, const void* from) {
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(to_shared);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
}
KE_DEVICE void ke_copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
KE_DEVICE void ke_copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/* A product that is rounded before it is added to: no fused multiply-add takes it apart. */
KE_DEVICE float ke_rounded(float product) { return __fadd_rn(product, -0.0f); }
KE_DEVICE double ke_rounded(double product) { return __dadd_rn(product, -0.0); }

/* Below are Hopper's own (sm_90a): copies that meet in barriers, and tiles that a warpgroup, 128
 * neighbouring threads, multiplies.
 *
 * A tile has 128 rows of 64 16-bit elements along k: 128 bytes a row, whose 16-byte piece c lies at
 * place c ^ row % 8 (what the hardware calls a 128-byte swizzle), at a multiple of 1024 bytes. */

/* Dynamic shared memory of the block from its first multiple of 1024 bytes on. */
KE_DEVICE char* ke_shared_tiles() {
  char* const all = ke_shared();
  return all + ((1024u - (uint32_t)__cvta_generic_to_shared(all) % 1024u) % 1024u);
}

/* A barrier in shared memory, for `count` arrivals and the bytes they expect; its phases alternate
 * between parity 0 and 1. One thread makes it and calls ke_barriers_made(), then all wait. */
KE_DEVICE uint32_t ke_shared_address(const void* shared) {
  return (uint32_t)__cvta_generic_to_shared(shared);
}
KE_DEVICE void ke_barrier_make(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ke_shared_address(barrier)),
               "r"(count)
               : "memory");
}
KE_DEVICE void ke_barriers_made() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
KE_DEVICE void ke_barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ke_shared_address(barrier))
               : "memory");
}
KE_DEVICE void ke_barrier_expect(uint64_t* barrier, int bytes) { /* and arrives */
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   ke_shared_address(barrier)),
               "r"(bytes)
               : "memory");
}
/* Until the phase of this parity is over. */
KE_DEVICE void ke_barrier_wait(uint64_t* barrier, int parity) {
  uint32_t over = 0;
  while (over == 0) {
    asm volatile(
        "{\n .reg .pred p;\n"
        " mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(over)
        : "r"(ke_shared_address(barrier)), "r"(parity)
        : "memory");
  }
}
/* A multiple of 16 bytes, which arrive at the barrier. */
KE_DEVICE void ke_bulk_copy(void* to_shared, const void* from, int bytes, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(ke_shared_address(to_shared)),
      "l"(from), "r"(bytes), "r"(ke_shared_address(barrier))
      : "memory");
}

/* What this thread has written to shared memory, and ke_copies_wait() has waited for, is there for
 * tile products of all who meet it in a barrier afterwards. */
KE_DEVICE void ke_written_for_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* Blocks of a cluster run at the same time and read each other's shared memory: none of them may
 * leave before the others have read. */
KE_DEVICE int ke_cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return (int)rank;
}
/* A barrier of all threads of the cluster; what they wrote before it, others see behind it. */
KE_DEVICE void ke_cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* The word that another block has where `shared` is in this one. */
KE_DEVICE uint32_t ke_peer_word(const char* shared, int block) {
  uint32_t address, word;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(ke_shared_address(shared)), "r"(block));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
  return word;
}

/* Registers a thread of this warpgroup has from here on. */
template <int kRegisters>
KE_DEVICE void ke_fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
KE_DEVICE void ke_more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/* What names a tile, or 64 rows of one, to ke_product_f16; 2 * i more is 16 * i further along k. */
KE_DEVICE uint64_t ke_tile(const char* tile) {
  return (uint64_t)((ke_shared_address(tile) & 0x3ffffu) >> 4) | 1ull << 16 | 64ull << 32 |
         1ull << 62;
}
/* Products run in the background, between ke_products_begin() and ke_products_wait<n>(), which
 * returns when all but the latest n groups are done; nothing touches their sums meanwhile. */
KE_DEVICE void ke_products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
KE_DEVICE void ke_products_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
KE_DEVICE void ke_products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/* sums = (keep ? sums : 0) + a * b over 16 of k, for 64 rows of a and the 128 of b. Thread t has
 * sums[4 * q + 2 * h + e] of row t / 32 * 16 + t % 32 / 4 + 8 * h, column 8 * q + t % 4 * 2 + e. */
#define KE_SUMS_8(i)                                                                         \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), \
      "+f"(sums[i + 5]), "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define KE_TILE_PRODUCT(name, type)                                                            \
  KE_DEVICE void name(float(&sums)[64], uint64_t a, uint64_t b, int keep) {                    \
    asm volatile(                                                                              \
        "{\n .reg .pred p;\n setp.ne.b32 p, %66, 0;\n"                                         \
        " wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                          \
        " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "             \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "     \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "     \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "    \
        "%64, %65, p, 1, 1, 0, 0;\n}"                                                          \
        : KE_SUMS_8(0), KE_SUMS_8(8), KE_SUMS_8(16), KE_SUMS_8(24), KE_SUMS_8(32),             \
          KE_SUMS_8(40), KE_SUMS_8(48), KE_SUMS_8(56)                                          \
        : "l"(a), "l"(b), "r"(keep));                                                          \
  }
KE_TILE_PRODUCT(ke_product_f16, "f16")
KE_TILE_PRODUCT(ke_product_bf16, "bf16")
#undef KE_TILE_PRODUCT
#undef KE_SUMS_8

#endif /* KE_HOST_EMULATION */

/* --- Memory ---------------------------------------------------------------------------------- */

KE_DEVICE float ke_load_bf16(const uint16_t* p) { return __uint_as_float((uint32_t)*p << 16); }

KE_DEVICE uint16_t ke_bits_bf16(float value) {
  const uint32_t bits = __float_as_uint(value);
  if (value != value) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

KE_DEVICE float ke_round_f16(float value) {
  const uint16_t bits = ke_bits_f16(value);
  return ke_load_f16(&bits);
}
KE_DEVICE float ke_round_bf16(float value) {
  const uint16_t bits = ke_bits_bf16(value);
  return ke_load_bf16(&bits);
}

template <int kBytes>
struct ke_word {
  typedef uint4 type;
};
template <>
struct ke_word<8> {
  typedef uint2 type;
};
template <>
struct ke_word<4> {
  typedef uint32_t type;
};
template <>
struct ke_word<2> {
  typedef uint16_t type;
};
template <>
struct ke_word<1> {
  typedef uint8_t type;
};

/* kCount neighbours at once, in words of up to 16 bytes; both places are aligned to such a word. */
template <int kCount, typename T>
KE_DEVICE void ke_copy(T* to, const T* from) {
  constexpr int kBytes = kCount * (int)sizeof(T);
  typedef typename ke_word<(kBytes < 16 ? kBytes : 16)>::type Word;
#pragma unroll
  for (int i = 0; i < kBytes / (int)sizeof(Word); ++i) {
    ((Word*)to)[i] = ((const Word*)from)[i];
  }
}

/* --- Joins across threads -------------------------------------------------------------------- */

/* A number with its position, for argmax and argmin. */
template <typename T>
struct ke_extreme {
  T value;
  int64_t position;
};

/* The first extreme: a NaN is one, and of equal ones the least position. */
template <typename T>
KE_DEVICE bool ke_is_before(ke_extreme<T> a, ke_extreme<T> b) {
  const bool equal = a.value == b.value || (a.value != a.value && b.value != b.value);
  return equal && a.position < b.position;
}
template <typename T>
KE_DEVICE ke_extreme<T> ke_argmax(ke_extreme<T> a, ke_extreme<T> b) {
  const bool wins = b.value > a.value || (b.value != b.value && a.value == a.value);
  return wins || ke_is_before(b, a) ? b : a;
}
template <typename T>
KE_DEVICE ke_extreme<T> ke_argmin(ke_extreme<T> a, ke_extreme<T> b) {
  const bool wins = b.value < a.value || (b.value != b.value && a.value == a.value);
  return wins || ke_is_before(b, a) ? b : a;
}

/* A sum of many terms, with what rounding took from it: nothing vanishes beside a large term. */
template <typename T>
struct ke_sum {
  T total, lost;
};
template <typename T>
KE_DEVICE ke_sum<T> ke_add(ke_sum<T> sum, T term) {
  const T total = sum.total + term, taken = total - sum.total;
  return {total, sum.lost + ((sum.total - (total - taken)) + (term - taken))};
}
template <typename T>
KE_DEVICE T ke_value(ke_sum<T> sum) {
  const T value = sum.total + sum.lost;
  return value == value ? value : sum.total; /* what an infinity takes is not a number */
}

/* A value by way of words of 32 bits, each of which `move` takes elsewhere. */
template <typename T, typename Move>
KE_DEVICE T ke_moved(T value, Move move) {
  if (sizeof(T) < 4) {
    union {
      T whole;
      uint32_t word;
    } narrow;
    narrow.word = 0;
    narrow.whole = value;
    narrow.word = move(narrow.word);
    return narrow.whole;
  }
  union {
    T whole;
    uint32_t words[(sizeof(T) + 3) / 4];
  } bits;
  bits.whole = value;
#pragma unroll
  for (int i = 0; i < (int)(sizeof(T) / 4); ++i) {
    bits.words[i] = move(bits.words[i]);
  }
  return bits.whole;
}
template <typename T>
KE_DEVICE T ke_shuffle(T value, int mask) {
  return ke_moved(value, [mask](uint32_t word) { return ke_shuffle_word(word, mask); });
}
/* The value of another lane of the warp, counted round it. */
template <typename T>
KE_DEVICE T ke_from_lane(T value, int lane) {
  return ke_moved(value, [lane](uint32_t word) { return ke_lane_word(word, lane & 31); });
}

/* The join of the values of all lanes of the warp up to this one. */
template <typename T, typename Join>
KE_DEVICE T ke_scan_warp(T value, Join join) {
  const int lane = (int)threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = ke_from_lane(value, lane - step);
    if (lane >= step) value = join(before, value);
  }
  return value;
}

/* Joins the values of kThreads neighbouring threads (a power of two; the first of them a multiple
 * of it); all of them get the result, in one order whatever ran first. More than a warp meet in
 * `room`, one T a warp of the block, and every thread of the block must take part. */
template <int kThreads, typename T, typename Join>
KE_DEVICE T ke_join(T value, char* room, Join join) {
#pragma unroll
  for (int mask = (kThreads < 32 ? kThreads : 32) / 2; mask > 0; mask /= 2) {
    value = join(value, ke_shuffle(value, mask));
  }
  if (kThreads <= 32) return value;
  constexpr int kWarps = (kThreads + 31) / 32;
  T* const parts = (T*)room;
  const int warp = (int)threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) parts[warp] = value;
  __syncthreads();
  const int first = warp / kWarps * kWarps;
  value = parts[first];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) value = join(value, parts[first + i]);
  __syncthreads();
  return value;
}

/* Joins the values of the threads of one column of a block of kColumns x kRows; `room` holds one T
 * a thread. Every thread of the block takes part and gets its column's. */
template <int kRows, int kColumns, typename T, typename Join>
KE_DEVICE T ke_join_column(T value, char* room, Join join) {
  T* const parts = (T*)room;
  parts[threadIdx.x] = value;
  __syncthreads();
  const int column = (int)threadIdx.x % kColumns;
  value = parts[column];
#pragma unroll
  for (int i = 1; i < kRows; ++i) value = join(value, parts[i * kColumns + column]);
  __syncthreads();
  return value;
}

/* Joins the values of the kBlocks (a power of two, up to 32) blocks of a cluster; all threads of a
 * block bring the same one, take part, and get the result. `room` holds one value of 4 to 16 bytes
 * and serves one join: nobody waits until the others have read it. */
template <int kBlocks, typename T, typename Join>
KE_DEVICE T ke_join_cluster(T value, char* room, Join join) {
  if (threadIdx.x == 0) *(T*)room = value;
  ke_cluster_sync();
  union {
    T whole;
    uint32_t words[(sizeof(T) + 3) / 4];
  } bits;
#pragma unroll
  for (int i = 0; i < (int)((sizeof(T) + 3) / 4); ++i) {
    bits.words[i] = ke_peer_word(room + 4 * i, (int)threadIdx.x % kBlocks);
  }
  value = bits.whole;
#pragma unroll
  for (int mask = kBlocks / 2; mask > 0; mask /= 2) value = join(value, ke_shuffle(value, mask));
  return value;
}

#include "kernelevolve/device_operands.h"

/* --- Operations ------------------------------------------------------------------------------ */

#define KE_FLOAT_FUNCTION(name)                                 \
  KE_DEVICE float ke_##name(float x) { return name##f(x); }     \
  KE_DEVICE double ke_##name(double x) { return name(x); }
KE_FLOAT_FUNCTION(exp)
KE_FLOAT_FUNCTION(exp2)
KE_FLOAT_FUNCTION(expm1)
KE_FLOAT_FUNCTION(log)
KE_FLOAT_FUNCTION(log2)
KE_FLOAT_FUNCTION(log10)
KE_FLOAT_FUNCTION(log1p)
KE_FLOAT_FUNCTION(sqrt)
KE_FLOAT_FUNCTION(rsqrt)
KE_FLOAT_FUNCTION(sin)
KE_FLOAT_FUNCTION(cos)
KE_FLOAT_FUNCTION(tan)
KE_FLOAT_FUNCTION(asin)
KE_FLOAT_FUNCTION(acos)
KE_FLOAT_FUNCTION(atan)
KE_FLOAT_FUNCTION(sinh)
KE_FLOAT_FUNCTION(cosh)
KE_FLOAT_FUNCTION(tanh)
KE_FLOAT_FUNCTION(asinh)
KE_FLOAT_FUNCTION(acosh)
KE_FLOAT_FUNCTION(atanh)
KE_FLOAT_FUNCTION(erf)
KE_FLOAT_FUNCTION(floor)
KE_FLOAT_FUNCTION(ceil)
KE_FLOAT_FUNCTION(trunc)
#undef KE_FLOAT_FUNCTION

KE_DEVICE float ke_abs(float x) { return fabsf(x); }
KE_DEVICE double ke_abs(double x) { return fabs(x); }
KE_DEVICE float ke_round(float x) { return rintf(x); }
KE_DEVICE double ke_round(double x) { return rint(x); }
/* NaN has no sign: 0. */
KE_DEVICE float ke_sign(float x) { return (float)((x > 0) - (x < 0)); }
KE_DEVICE double ke_sign(double x) { return (double)((x > 0) - (x < 0)); }

#define KE_FLOAT_FUNCTION(name)                                                \
  KE_DEVICE float ke_##name(float a, float b) { return name##f(a, b); }        \
  KE_DEVICE double ke_##name(double a, double b) { return name(a, b); }
KE_FLOAT_FUNCTION(pow)
KE_FLOAT_FUNCTION(fmod)
KE_FLOAT_FUNCTION(atan2)
KE_FLOAT_FUNCTION(copysign)
#undef KE_FLOAT_FUNCTION

/* A NaN goes through. */
template <typename T>
KE_DEVICE T ke_maximum(T a, T b) {
  return a > b || a != a ? a : b;
}
template <typename T>
KE_DEVICE T ke_minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

/* Python's remainder and floor division, consistent with each other. */
template <typename T>
KE_DEVICE T ke_float_mod(T a, T b) {
  T rest = ke_fmod(a, b);
  if (rest != 0 && (b < 0) != (rest < 0)) rest += b;
  return rest;
}
template <typename T>
KE_DEVICE T ke_float_floor_div(T a, T b) {
  if (b == 0) return a / b;
  const T rest = ke_fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return ke_copysign((T)0, a / b);
  const T whole = ke_floor(quotient);
  return quotient - whole > (T)0.5 ? whole + 1 : whole;
}
KE_DEVICE float ke_mod(float a, float b) { return ke_float_mod(a, b); }
KE_DEVICE double ke_mod(double a, double b) { return ke_float_mod(a, b); }
KE_DEVICE float ke_floor_div(float a, float b) { return ke_float_floor_div(a, b); }
KE_DEVICE double ke_floor_div(double a, double b) { return ke_float_floor_div(a, b); }

KE_DEVICE float ke_infinity_float() { return __uint_as_float(0x7f800000u); }
KE_DEVICE float ke_nan_float() { return __uint_as_float(0x7fc00000u); }
KE_DEVICE double ke_infinity_double() { return (double)ke_infinity_float(); }
KE_DEVICE double ke_nan_double() { return (double)ke_nan_float(); }

/* Integers: narrower ones are widened by the caller, which also wraps the result. */
KE_DEVICE int64_t ke_int_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}
KE_DEVICE int64_t ke_int_sub(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a - (uint64_t)b);
}
KE_DEVICE int64_t ke_int_mul(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
KE_DEVICE int64_t ke_int_abs(int64_t a) { return a < 0 ? ke_int_sub(0, a) : a; }
KE_DEVICE int64_t ke_int_div(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? ke_int_sub(0, a) : a / b;
}
KE_DEVICE int64_t ke_int_fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
KE_DEVICE int64_t ke_int_floor_div(int64_t a, int64_t b) {
  const int64_t rest = ke_int_fmod(a, b);
  return ke_int_div(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}
KE_DEVICE int64_t ke_int_mod(int64_t a, int64_t b) {
  const int64_t rest = ke_int_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
KE_DEVICE int64_t ke_int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b != 0; b >>= 1, a = ke_int_mul(a, a)) {
    if (b & 1) result = ke_int_mul(result, a);
  }
  return result;
}
KE_DEVICE int64_t ke_int_shift_left(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b);
}
KE_DEVICE int64_t ke_int_shift_right(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}

#endif /* KERNELEVOLVE_DEVICE_H_ */
