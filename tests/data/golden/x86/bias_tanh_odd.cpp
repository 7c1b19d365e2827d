// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_add.
// Inputs: x float32[37, 101], b float32[101].
// Outputs: y float32[37, 101].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline void store_f32x8(float* p, f32x8 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

static inline f32x8 abs_of(f32x8 x) {
  return (f32x8)((i32x8)x & 0x7fffffff);
}

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

static inline f32x8 copysign_of(f32x8 magnitude, f32x8 sign) {
  return (f32x8)(((i32x8)magnitude & 0x7fffffff) | ((i32x8)sign & (int32_t)0x80000000));
}

static inline f32x8 tanh_of(f32x8 x) {
  const f32x8 a = abs_of(x);
  const f32x8 z = x * x;
  f32x8 p = z * 0.00214753686f - 0.00818267386f;
  p = p * z + 0.0217029671f;
  p = p * z - 0.0539472043f;
  p = p * z + 0.133332098f;
  p = p * z - 0.333333309f;
  const f32x8 large = 1.0f - 2.0f / (exp_of(a + a) + 1.0f);
  return a < 0.625f ? x + x * z * p : copysign_of(large, x);
}

static inline float tanh_of(float x) {
  return tanh_of(f32x8{} + x)[0];
}

// kernel0_add: aten.add.Tensor, aten.tanh.
// Schedule: vectors of 8 along j, unrolled 1x; 19 tasks of 2 rows of 101 over the threads.
struct Kernel0AddArguments {
  float* y;
  const float* x;
  const float* b;
};

static void kernel0_add([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0AddArguments& arguments = *(const Kernel0AddArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  const float* __restrict const b = arguments.b;
  const int64_t begin = task * 2;
  const int64_t end = begin + 2 < 37 ? begin + 2 : 37;
  for (int64_t outer = begin; outer < end; ++outer) {
    const int64_t i = outer;
    constexpr int64_t first = 0, last = 101;
    int64_t j = first;
    for (; j + 8 <= last; j += 8) {
      const f32x8 x_0 = load_f32x8(x + i * 101 + j);
      const f32x8 b_1 = load_f32x8(b + j);
      const f32x8 tanh_2 = tanh_of((x_0 + b_1));
      store_f32x8(y + i * 101 + j, tanh_2);
    }
    for (; j < last; ++j) {
      const float tanh_3 = tanh_of((x[i * 101 + j] + b[j]));
      y[i * 101 + j] = tanh_3;
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
  if (input_count != 2 || output_count != 1) return 1;
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 3737)) return 1;
  if (!matches(inputs[1], KE_DTYPE_FLOAT, 32, 101)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 3737)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  [[maybe_unused]] const float* const b = (const float*)inputs[1].data;
  float* const y = (float*)outputs[0].data;
  Kernel0AddArguments kernel0_add_arguments = {y, x, b};
  context->parallel_for(context->pool, 19, kernel0_add, &kernel0_add_arguments);
  return 0;
}
