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

/* Copies 16 bytes to shared memory in the background; ke_copies_wait<n>() returns when all but the
 * latest n groups of this thread have arrived. Other threads see them behind a barrier. */
KE_DEVICE void ke_copy_16(void* to_shared, const void* from) {
  const uint32_t address = (uint32_t)__cvta_generic_to_shared(to_shared);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
KE_DEVICE void ke_copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
KE_DEVICE void ke_copies_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

/* A product that is rounded before it is added to: no fused multiply-add takes it apart. */
KE_DEVICE float ke_rounded(float product) { return __fadd_rn(product, -0.0f); }
KE_DEVICE double ke_rounded(double product) { return __dadd_rn(product, -0.0); }

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

template <typename T>
KE_DEVICE T ke_shuffle(T value, int mask) {
  if (sizeof(T) < 4) {
    union {
      T whole;
      uint32_t word;
    } narrow;
    narrow.word = 0;
    narrow.whole = value;
    narrow.word = ke_shuffle_word(narrow.word, mask);
    return narrow.whole;
  }
  union {
    T whole;
    uint32_t words[(sizeof(T) + 3) / 4];
  } bits;
  bits.whole = value;
#pragma unroll
  for (int i = 0; i < (int)(sizeof(T) / 4); ++i) {
    bits.words[i] = ke_shuffle_word(bits.words[i], mask);
  }
  return bits.whole;
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

/* Joins the values of the threads of one column of a block of 32 x kRows; `room` holds one T a
 * thread. Every thread of the block takes part and gets its column's. */
template <int kRows, typename T, typename Join>
KE_DEVICE T ke_join_column(T value, char* room, Join join) {
  T* const parts = (T*)room;
  parts[threadIdx.x] = value;
  __syncthreads();
  const int column = (int)threadIdx.x % 32;
  value = parts[column];
#pragma unroll
  for (int i = 1; i < kRows; ++i) value = join(value, parts[i * 32 + column]);
  __syncthreads();
  return value;
}

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
