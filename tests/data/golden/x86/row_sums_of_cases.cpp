// SPDX-License-Identifier: Apache-2.0
//
// Kernels for several shape cases; ke_launch chooses by the inputs' shapes.
//
// Case 0: Runs kernel0_sum.
// Inputs: x float32[1024, 64], b float32[1].
// Outputs: y float32[1024].
//
// Case 1: Runs kernel0_sum.
// Inputs: x float32[1, 1], b float32[1].
// Outputs: y float32[1].
//
// Case 2: Runs kernel0_sum.
// Inputs: x float32[0, 64], b float32[1].
// Outputs: y float32[0].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline float sum_of_lanes(f32x8 v) {
  return (float)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
}

static bool matches(const ke_tensor& tensor, int code, int bits, int64_t elements) {
  for (int32_t d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] == 0) return elements == 0;
    if (elements % tensor.shape[d] != 0) return false;
    elements /= tensor.shape[d];
  }
  return tensor.dtype_code == code && tensor.dtype_bits == bits && elements == 1;
}

namespace case0 {

// kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Schedule: a row stays in cache from one pass to the next; vectors of 8 along it, 4 accumulators;
// 16 tasks of 64 rows over the threads.
struct Kernel0SumArguments {
  float* y;
  const float* x;
  const float* b;
};

static void kernel0_sum([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0SumArguments& arguments = *(const Kernel0SumArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  const float* __restrict const b = arguments.b;
  constexpr int64_t kRows = 1024, kRowsPerTask = 64;
  const int64_t begin = task * kRowsPerTask;
  const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;
  for (int64_t row = begin; row < end; ++row) {
    [[maybe_unused]] const int64_t i = row;
    // aten.sum.dim_IntList
    float s_acc = 0.0f;
    {
      f32x8 total = f32x8{};
      constexpr int64_t first = 0, last = 64;
      const auto term = [&]([[maybe_unused]] int64_t j) __attribute__((always_inline)) {
        const f32x8 x_0 = load_f32x8(x + i * 64 + j);
        return x_0;
      };
      int64_t j = first;
      {
        const int64_t end = last;
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
        total = total + partial0;
      }
      s_acc = s_acc + sum_of_lanes(total);
    }
    [[maybe_unused]] const float s_row = s_acc;
    // aten.add.Tensor
    const float add_1 = s_row + b[0];
    [[maybe_unused]] const float y_row = add_1;
    y[i] = y_row;
  }
}

static int launch(const ke_tensor* inputs, int32_t input_count,
                  ke_tensor* outputs, int32_t output_count,
                  ke_context* context) {
  if (input_count != 2 || output_count != 1) return 1;
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 65536)) return 1;
  if (!matches(inputs[1], KE_DTYPE_FLOAT, 32, 1)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 1024)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  [[maybe_unused]] const float* const b = (const float*)inputs[1].data;
  float* const y = (float*)outputs[0].data;
  Kernel0SumArguments kernel0_sum_arguments = {y, x, b};
  context->parallel_for(context->pool, 16, kernel0_sum, &kernel0_sum_arguments);
  return 0;
}

}  // namespace case0

namespace case1 {

// kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Schedule: a row stays in cache from one pass to the next; vectors of 8 along it, 4 accumulators;
// 1 tasks of 1 rows on one thread.
struct Kernel0SumArguments {
  float* y;
  const float* x;
  const float* b;
};

static void kernel0_sum([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0SumArguments& arguments = *(const Kernel0SumArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  const float* __restrict const b = arguments.b;
  constexpr int64_t kRows = 1, kRowsPerTask = 1;
  const int64_t begin = task * kRowsPerTask;
  const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;
  for (int64_t row = begin; row < end; ++row) {
    // aten.sum.dim_IntList
    float s_acc = 0.0f;
    {
      constexpr int64_t first = 0, last = 1;
      const auto single = [&]([[maybe_unused]] int64_t j) __attribute__((always_inline)) {
        const float x_0 = x[0];
        return x_0;
      };
      int64_t j = first;
      for (; j < last; ++j) {
        s_acc = s_acc + single(j);
      }
    }
    [[maybe_unused]] const float s_row = s_acc;
    // aten.add.Tensor
    const float add_1 = s_row + b[0];
    [[maybe_unused]] const float y_row = add_1;
    y[0] = y_row;
  }
}

static int launch(const ke_tensor* inputs, int32_t input_count,
                  ke_tensor* outputs, int32_t output_count,
                  ke_context* context) {
  if (input_count != 2 || output_count != 1) return 1;
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 1)) return 1;
  if (!matches(inputs[1], KE_DTYPE_FLOAT, 32, 1)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 1)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  [[maybe_unused]] const float* const b = (const float*)inputs[1].data;
  float* const y = (float*)outputs[0].data;
  Kernel0SumArguments kernel0_sum_arguments = {y, x, b};
  kernel0_sum(0, &kernel0_sum_arguments);
  return 0;
}

}  // namespace case1

namespace case2 {

// kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Nothing to compute.

static int launch(const ke_tensor* inputs, int32_t input_count,
                  ke_tensor* outputs, int32_t output_count,
                  ke_context* context) {
  if (input_count != 2 || output_count != 1) return 1;
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 0)) return 1;
  if (!matches(inputs[1], KE_DTYPE_FLOAT, 32, 1)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 0)) return 1;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  [[maybe_unused]] const float* const b = (const float*)inputs[1].data;
  float* const y = (float*)outputs[0].data;
  return 0;
}

}  // namespace case2

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count,
                         ke_tensor* outputs, int32_t output_count,
                         ke_context* context) {
  if (input_count != 2) return 1;
  if (inputs[0].ndim == 2 && inputs[0].shape[0] == 1024 && inputs[0].shape[1] == 64) {
    return case0::launch(inputs, input_count, outputs, output_count, context);
  }
  if (inputs[0].ndim == 2 && inputs[0].shape[0] == 1 && inputs[0].shape[1] == 1) {
    return case1::launch(inputs, input_count, outputs, output_count, context);
  }
  if (inputs[0].ndim == 2 && inputs[0].shape[0] == 0 && inputs[0].shape[1] == 64) {
    return case2::launch(inputs, input_count, outputs, output_count, context);
  }
  return 1;  // no case of these shapes
}
