// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_mse_loss.
// Inputs: x float32[128, 4096], t float32[128, 4096].
// Outputs: y float32[].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef float f32x8 __attribute__((vector_size(32)));
typedef double f64x8 __attribute__((vector_size(64)));

static inline f32x8 load_f32x8(const float* p) {
  f32x8 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline double sum_of_lanes(f64x8 v) {
  return (double)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
}

// kernel0_mse_loss: aten.mse_loss; aten.mse_loss.
// Schedule: each of 1 rows is cut into 8 parts; 1 passes over all parts; vectors of 8, 4
// accumulators.
struct Kernel0MseLossArguments {
  float* y;
  const float* x;
  const float* t;
  char* kernel0_mse_loss_scratch;
  int64_t first_task;
};

static void kernel0_mse_loss_pass1([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0MseLossArguments& arguments = *(const Kernel0MseLossArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  const float* __restrict const t = arguments.t;
  char* __restrict const kernel0_mse_loss_scratch = arguments.kernel0_mse_loss_scratch;
  constexpr int64_t kParts = 8;
  task += arguments.first_task;
  const int64_t row = task / kParts, part = task % kParts;
  // aten.mse_loss
  {
    constexpr int64_t kExtent = 524288, kChunk = 65536;
    const int64_t from = part * kChunk < kExtent ? part * kChunk : kExtent;
    const int64_t to = from + kChunk < kExtent ? from + kChunk : kExtent;
    double s_acc = 0.0;
    {
      f64x8 total = f64x8{};
      const int64_t first = from, last = to;
      const auto term = [&]([[maybe_unused]] int64_t i_j) __attribute__((always_inline)) {
        const f32x8 x_0 = load_f32x8(x + i_j);
        const f32x8 t_1 = load_f32x8(t + i_j);
        const f32x8 t_2 = x_0 - t_1;
        const f32x8 pow_3 = t_2 * t_2;
        return pow_3;
      };
      int64_t i_j = first;
      // Short runs: a large term swallows what follows it.
      while (i_j + 8 <= last) {
        const int64_t end = i_j + 512 < last ? i_j + 512 : last;
        f32x8 partial0 = f32x8{};
        f32x8 partial1 = f32x8{};
        f32x8 partial2 = f32x8{};
        f32x8 partial3 = f32x8{};
        for (; i_j + 32 <= end; i_j += 32) {
          partial0 = partial0 + term(i_j);
          partial1 = partial1 + term(i_j + 8);
          partial2 = partial2 + term(i_j + 16);
          partial3 = partial3 + term(i_j + 24);
        }
        for (; i_j + 8 <= end; i_j += 8) {
          partial0 = partial0 + term(i_j);
        }
        partial0 = partial0 + partial2;
        partial1 = partial1 + partial3;
        partial0 = partial0 + partial1;
        total = total + __builtin_convertvector(partial0, f64x8);
      }
      s_acc = s_acc + sum_of_lanes(total);
    }
    ((double*)(kernel0_mse_loss_scratch + 0))[task] = s_acc;
  }
}

static void kernel0_mse_loss_finish([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0MseLossArguments& arguments = *(const Kernel0MseLossArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const x = arguments.x;
  const float* __restrict const t = arguments.t;
  char* __restrict const kernel0_mse_loss_scratch = arguments.kernel0_mse_loss_scratch;
  constexpr int64_t kParts = 8;
  const int64_t row = task;
  double s_acc = ((double*)(kernel0_mse_loss_scratch + 0))[row * kParts];
  for (int64_t p = 1; p < kParts; ++p) {
    s_acc = s_acc + ((double*)(kernel0_mse_loss_scratch + 0))[row * kParts + p];
  }
  [[maybe_unused]] const float s_row = (float)s_acc;
  const float div_4 = s_row / 524288.0f;
  [[maybe_unused]] const float y_row = div_4;
  y[0] = y_row;
}


constexpr int64_t kScratchBytes = 128;

extern "C" int64_t ke_scratch_bytes(void) { return kScratchBytes; }

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
  if (!matches(inputs[0], KE_DTYPE_FLOAT, 32, 524288)) return 1;
  if (!matches(inputs[1], KE_DTYPE_FLOAT, 32, 524288)) return 1;
  if (!matches(outputs[0], KE_DTYPE_FLOAT, 32, 1)) return 1;
  if (context->scratch_bytes < kScratchBytes) return 1;
  char* const scratch = (char*)context->scratch;
  [[maybe_unused]] const float* const x = (const float*)inputs[0].data;
  [[maybe_unused]] const float* const t = (const float*)inputs[1].data;
  float* const y = (float*)outputs[0].data;
  char* const kernel0_mse_loss_scratch = scratch + 0;
  Kernel0MseLossArguments kernel0_mse_loss_arguments = {y, x, t, kernel0_mse_loss_scratch, 0};
  context->parallel_for(context->pool, 8, kernel0_mse_loss_pass1, &kernel0_mse_loss_arguments);
  kernel0_mse_loss_finish(0, &kernel0_mse_loss_arguments);
  return 0;
}
