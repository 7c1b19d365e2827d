// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_max.
// Inputs: x int64[1000].
// Outputs: y int64[].
#include <stdint.h>

#include "kernelevolve/kernel.h"

typedef int64_t i64x4 __attribute__((vector_size(32)));

static inline i64x4 load_i64x4(const int64_t* p) {
  i64x4 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

static inline int64_t maximum_of(int64_t a, int64_t b) {
  return (a > b) ? a : b;
}

static inline i64x4 maximum_of(i64x4 a, i64x4 b) {
  return (a > b) ? a : b;
}

static inline int64_t maximum_of_lanes(i64x4 v) {
  int64_t r = v[0];
  for (int lane = 1; lane < 4; ++lane) r = maximum_of(r, v[lane]);
  return r;
}

// kernel0_max: aten.max.default.
// Schedule: a row stays in cache from one pass to the next; vectors of 4 along it, 4 accumulators;
// 1 tasks of 1 rows on one thread.
struct Kernel0MaxArguments {
  int64_t* y;
  const int64_t* x;
};

static void kernel0_max([[maybe_unused]] int64_t task, void* argument) {
  const Kernel0MaxArguments& arguments = *(const Kernel0MaxArguments*)argument;
  int64_t* __restrict const y = arguments.y;
  const int64_t* __restrict const x = arguments.x;
  constexpr int64_t kRows = 1, kRowsPerTask = 1;
  const int64_t begin = task * kRowsPerTask;
  const int64_t end = begin + kRowsPerTask < kRows ? begin + kRowsPerTask : kRows;
  for (int64_t row = begin; row < end; ++row) {
    // aten.max.default
    int64_t y_acc = INT64_MIN;
    {
      i64x4 total = (INT64_MIN - i64x4{});
      constexpr int64_t first = 0, last = 1000;
      const auto term = [&]([[maybe_unused]] int64_t i) __attribute__((always_inline)) {
        const i64x4 x_0 = load_i64x4(x + i);
        return x_0;
      };
      int64_t i = first;
      {
        const int64_t end = last;
        i64x4 partial0 = (INT64_MIN - i64x4{});
        i64x4 partial1 = (INT64_MIN - i64x4{});
        i64x4 partial2 = (INT64_MIN - i64x4{});
        i64x4 partial3 = (INT64_MIN - i64x4{});
        for (; i + 16 <= end; i += 16) {
          partial0 = maximum_of(partial0, term(i));
          partial1 = maximum_of(partial1, term(i + 4));
          partial2 = maximum_of(partial2, term(i + 8));
          partial3 = maximum_of(partial3, term(i + 12));
        }
        for (; i + 4 <= end; i += 4) {
          partial0 = maximum_of(partial0, term(i));
        }
        partial0 = maximum_of(partial0, partial2);
        partial1 = maximum_of(partial1, partial3);
        partial0 = maximum_of(partial0, partial1);
        total = maximum_of(total, partial0);
      }
      y_acc = maximum_of(y_acc, maximum_of_lanes(total));
    }
    [[maybe_unused]] const int64_t y_row = y_acc;
    y[0] = y_row;
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
  if (!matches(inputs[0], KE_DTYPE_INT, 64, 1000)) return 1;
  if (!matches(outputs[0], KE_DTYPE_INT, 64, 1)) return 1;
  [[maybe_unused]] const int64_t* const x = (const int64_t*)inputs[0].data;
  int64_t* const y = (int64_t*)outputs[0].data;
  Kernel0MaxArguments kernel0_max_arguments = {y, x};
  kernel0_max(0, &kernel0_max_arguments);
  return 0;
}
