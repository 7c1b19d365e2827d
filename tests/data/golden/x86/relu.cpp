// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_relu.
// Inputs: x float32[16, 16384].
// Outputs: y float32[16, 16384].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Past the caches; p is aligned to 32 bytes.
static inline void stream_f32x8(float* p, f32x8 v) {
  union {
    f32x8 whole;
    f32x8 part[1];
  } bits = {v};
  __builtin_ia32_movntps256((float*)p + 0, bits.part[0]);
}

// kernel0_relu: aten.relu.default.
// Schedule: vectors of 8 along i_j, unrolled 4x; 16 tasks of 16384 elements over the threads;
// stores pass the caches by.
struct Kernel0ReluArguments {
  float* y;
  const float* x;
};

static void kernel0_relu([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0ReluArguments& arguments = *(const Kernel0ReluArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  constexpr int64_t kChunk = 16384, kExtent = 262144;
  const int64_t first = task * kChunk;
  const int64_t last = first + kChunk;
  int64_t i_j = first;
  #pragma GCC unroll 4
  for (; i_j + 8 <= last; i_j += 8) {
    const f32x8 x_0 = load_f32x8(x + i_j);
    const f32x8 maximum_1 = x_0 <= 0.0f ? f32x8{} : x_0;
    stream_f32x8(y + i_j, maximum_1);
  }
  __builtin_ia32_sfence();
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
  Kernel0ReluArguments kernel0_relu_arguments = {y, x};
  context->parallel_for(context->pool, 16, kernel0_relu, &kernel0_relu_arguments);
  return 0;
}
