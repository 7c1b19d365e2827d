// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_cumprod.
// Inputs: x float32[64, 100, 333].
// Outputs: y float32[64, 100, 333].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x4 __attribute__((vector_size(32)));

static inline f32x4 load_f32x4(const float* p) {
  f32x4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline f64x4 load_f64x4(const double* p) {
  f64x4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline void store_f32x4(float* p, f32x4 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

static inline void store_f64x4(double* p, f64x4 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// kernel0_cumprod: aten.cumprod.
// Schedule: each of 4 lanes scans a row of its own along i; 64 tasks of 512 neighbouring rows over
// the threads.
struct Kernel0CumprodArguments {
  float* y;
  const float* x;
};

static void kernel0_cumprod([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0CumprodArguments& arguments = *(const Kernel0CumprodArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  constexpr int64_t kTile = 512, kTiles = 1, kExtent = 333, kLength = 100;
  [[maybe_unused]] const int64_t outer = task / kTiles;
  const int64_t first = task % kTiles * kTile;
  const int64_t last = first + kTile < kExtent ? first + kTile : kExtent;
  [[maybe_unused]] const int64_t n = outer;
  alignas(64) double carry[kTile];
  for (int64_t at = 0; at < kTile; ++at) carry[at] = 1.0;
  for (int64_t i = 0; i < kLength; ++i) {
    int64_t j = first;
    for (; j + 4 <= last; j += 4) {
      const f32x4 x_0 = load_f32x4(x + n * 33300 + i * 333 + j);
      const f64x4 cast_1 = __builtin_convertvector(x_0, f64x4);
      const f64x4 here_2 = load_f64x4(carry + (j - first)) * cast_1;
      store_f64x4(carry + (j - first), here_2);
      const f32x4 cast_3 = __builtin_convertvector(here_2, f32x4);
      store_f32x4(y + n * 33300 + i * 333 + j, cast_3);
    }
    for (; j + 1 <= last; j += 1) {
      const float x_4 = x[n * 33300 + i * 333 + j];
      const double cast_5 = (double)x_4;
      carry[j - first] = carry[j - first] * cast_5;
      const double here_6 = carry[j - first];
      const float cast_7 = (float)here_6;
      y[n * 33300 + i * 333 + j] = cast_7;
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
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 2131200)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 2131200)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  float* const y = (float*)outputs[0].data;
  Kernel0CumprodArguments kernel0_cumprod_arguments = {y, x};
  context->parallel_for(context->pool, 64, kernel0_cumprod, &kernel0_cumprod_arguments);
  return 0;
}
