// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_softmax.
// Inputs: x float32[16, 16384].
// Outputs: y float32[16, 16384].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));

// x * 2^n for n in [-252, 254], rounded once.
static inline f32x8 scale_of(f32x8 x, i32x8 n) {
  const i32x8 half = n >> 1;
  return x * (f32x8)((half + 127) << 23) * (f32x8)((n - half + 127) << 23);
}

// e^r - 1 for |r| <= ln(2) / 2.
static inline f32x8 expm1_reduced(f32x8 r) {
  f32x8 q = r * 0.000199150311f + 0.00139420599f;
  q = q * r + 0.00833327172f;
  q = q * r + 0.0416663419f;
  q = q * r + 0.166666668f;
  q = q * r + 0.5f;
  return r + r * r * q;
}

// e^x = 2^n e^r with n = round(x / ln 2).
static inline f32x8 exp_of(f32x8 x) {
  const f32x8 highest = f32x8{} + 89.0f, lowest = f32x8{} - 104.0f;
  x = x > highest ? highest : x;
  x = x < lowest ? lowest : x;
  const f32x8 shifted = x * 1.44269504f + 12582912.0f;  // the low mantissa bits hold n
  const f32x8 n = shifted - 12582912.0f;
  const f32x8 r = (x - n * 0.693145752f) - n * 1.42860677e-06f;
  return scale_of(expm1_reduced(r) + 1.0f, (i32x8)shifted - 0x4b400000);
}

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline float maximum_of(float a, float b) {
  return (a > b) || (a != a) ? a : b;
}

static inline f32x8 maximum_of(f32x8 a, f32x8 b) {
  return (a > b) | (a != a) ? a : b;
}

static inline float maximum_of_lanes(f32x8 v) {
  float r = v[0];
  for (int lane = 1; lane < 8; ++lane) r = maximum_of(r, v[lane]);
  return r;
}

static inline void store_f32x8(float* p, f32x8 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

static inline double sum_of_lanes(f64x8 v) {
  return (double)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
}

// kernel0_softmax: aten._softmax.default; aten._softmax.default; aten._softmax.default.
// Schedule: a row stays in cache from one pass to the next; vectors of 8 along it, 4 accumulators;
// 16 tasks of 1 rows over the threads. The terms of the reduction wait in the output.
struct Kernel0SoftmaxArguments {
  float* y;
  const float* x;
};

static void kernel0_softmax([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0SoftmaxArguments& arguments = *(const Kernel0SoftmaxArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  constexpr int64_t kRows = 16, kRowsPerTask = 1;
  const int64_t begin = task * kRowsPerTask;
  const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;
  for (int64_t row = begin; row < end; ++row) {
    [[maybe_unused]] const int64_t i = row;
    // aten._softmax.default
    float m_acc = -__builtin_inff();
    {
      f32x8 total = (-__builtin_inff() - f32x8{});
      constexpr int64_t first = 0, last = 16384;
      const auto term = [&]([[maybe_unused]] int64_t j) __attribute__((always_inline)) {
        const f32x8 x_0 = load_f32x8(x + i * 16384 + j);
        return x_0;
      };
      int64_t j = first;
      {
        const int64_t end = last;
        f32x8 partial0 = (-__builtin_inff() - f32x8{});
        f32x8 partial1 = (-__builtin_inff() - f32x8{});
        f32x8 partial2 = (-__builtin_inff() - f32x8{});
        f32x8 partial3 = (-__builtin_inff() - f32x8{});
        for (; j + 32 <= end; j += 32) {
          partial0 = maximum_of(partial0, term(j));
          partial1 = maximum_of(partial1, term(j + 8));
          partial2 = maximum_of(partial2, term(j + 16));
          partial3 = maximum_of(partial3, term(j + 24));
        }
        for (; j + 8 <= end; j += 8) {
          partial0 = maximum_of(partial0, term(j));
        }
        partial0 = maximum_of(partial0, partial2);
        partial1 = maximum_of(partial1, partial3);
        partial0 = maximum_of(partial0, partial1);
        total = maximum_of(total, partial0);
      }
      m_acc = maximum_of(m_acc, maximum_of_lanes(total));
    }
    [[maybe_unused]] const float m_row = m_acc;
    // aten._softmax.default
    double s_acc = 0.0;
    {
      f64x8 total = f64x8{};
      constexpr int64_t first = 0, last = 16384;
      const auto term = [&]([[maybe_unused]] int64_t j) __attribute__((always_inline)) {
        const f32x8 x_1 = load_f32x8(x + i * 16384 + j);
        const f32x8 exp_2 = exp_of((x_1 - m_row));
        store_f32x8(y + i * 16384 + j, exp_2);
        return exp_2;
      };
      int64_t j = first;
      // Short runs: a large term swallows what follows it.
      while (j + 8 <= last) {
        const int64_t end = j + 512 < last ? j + 512 : last;
        f32x8 partial0 = f32x8{};
        f32x8 partial1 = f32x8{};
        f32x8 partial2 = f32x8{};
        f32x8 partial3 = f32x8{};
        for (; j + 32 <= end; j += 32) {
          partial0 = partial0 + term(j);
          partial1 = partial1 + term(j + 8);
          partial2 = partial2 + term(j + 16);
          partial3 = partial3 + term(j + 24);
        }
        for (; j + 8 <= end; j += 8) {
          partial0 = partial0 + term(j);
        }
        partial0 = partial0 + partial2;
        partial1 = partial1 + partial3;
        partial0 = partial0 + partial1;
        total = total + __builtin_convertvector(partial0, f64x8);
      }
      s_acc = s_acc + sum_of_lanes(total);
    }
    [[maybe_unused]] const float s_row = (float)s_acc;
    // aten._softmax.default
    {
      constexpr int64_t first = 0, last = 16384;
      int64_t j = first;
      #pragma GCC unroll 2
      for (; j + 8 <= last; j += 8) {
        const f32x8 y_3 = load_f32x8(y + i * 16384 + j);
        const f32x8 div_4 = y_3 / s_row;
        store_f32x8(y + i * 16384 + j, div_4);
      }
    }
  }
}

static bool matches(const ke_tensor& tensor, int code, int bits, int64_t elements) {
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] == 0) return elements == 0;
    if (elements % tensor.shape[d] != 0) return false;
    elements /= tensor.shape[d];
  }
  return tensor.dtype_code == code && tensor.dtype_bits == bits && elements == 1;
}

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count,
                         ke_tensor* outputs, int32_t output_count,
                         ke_context* context) {
  if (input_count != 1 || output_count != 1) return 1;
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 262144)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 262144)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  float* const y = (float*)outputs[0].data;
  Kernel0SoftmaxArguments kernel0_softmax_arguments = {y, x};
  context->parallel_for(context->pool, 16, kernel0_softmax, &kernel0_softmax_arguments);
  return 0;
}
