// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_argmax.
// Inputs: x float32[16, 256, 256].
// Outputs: y int64[16, 256].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef int64_t i64x8 __attribute__((vector_size(64)));

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline i32x8 load_i32x8(const int32_t* p) {
  i32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline i64x8 load_i64x8(const int64_t* p) {
  i64x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline void store_f32x8(float* p, f32x8 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

static inline void store_i32x8(int32_t* p, i32x8 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

static inline void store_i64x8(int64_t* p, i64x8 v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// kernel0_argmax: aten.argmax.default.
// Schedule: vectors of 8 rows along j, accumulators in arrays of 512 rows; 16 tasks over the
// threads.
struct Kernel0ArgmaxArguments {
  int64_t* y;
  const float* x;
};

static void kernel0_argmax([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0ArgmaxArguments& arguments = *(const Kernel0ArgmaxArguments*)argument;
  int64_t* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  constexpr int64_t kTile = 512, kTiles = 1, kExtent = 256;
  const int64_t first = task % kTiles * kTile;
  const int64_t last = first + kTile < kExtent ? first + kTile : kExtent;
  [[maybe_unused]] const int64_t outer = task / kTiles;
  const int64_t n = outer;
  // aten.argmax.default
  alignas(64) float y_acc[kTile];
  alignas(64) int32_t y_at[kTile];
  for (int64_t i = 0; i < kTile; ++i) y_acc[i] = -__builtin_inff();
  for (int64_t i = 0; i < kTile; ++i) y_at[i] = 0;
  {
    int32_t position = 0;
    for (int64_t k = 0; k < 256; ++k) {
      int64_t j = first;
      #pragma GCC unroll 4
      for (; j + 8 <= last; j += 8) {
        const f32x8 x_0 = load_f32x8(x + n * 65536 + k * 256 + j);
        const auto value = x_0;
        const auto top = load_f32x8(y_acc + (j - first));
        const auto better = ((value > top) | ((value != value) & (top == top)));
        store_f32x8(y_acc + (j - first), better ? value : top);
        store_i32x8(y_at + (j - first), better ? (position - i32x8{}) : load_i32x8(y_at + (j -
            first)));
      }
      ++position;
    }
  }
  alignas(64) int64_t y_row[kTile];
  for (int64_t i = 0; i < last - first; ++i) {
    y_row[i] = (int64_t)y_at[i];
  }
  {
    int64_t j = first;
    #pragma GCC unroll 4
    for (; j + 8 <= last; j += 8) {
      const i64x8 value_1 = load_i64x8(y_row + (j - first));
      store_i64x8(y + n * 256 + j, value_1);
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
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 1048576)) return 1;
  if (!matches(outputs[0], KE_DTYPE_INT, 64, 4096)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  int64_t* const y = (int64_t*)outputs[0].data;
  Kernel0ArgmaxArguments kernel0_argmax_arguments = {y, x};
  context->parallel_for(context->pool, 16, kernel0_argmax, &kernel0_argmax_arguments);
  return 0;
}
