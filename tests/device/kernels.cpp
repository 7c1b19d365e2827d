// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the stand-in of the CUDA driver (fake_cuda.cpp), right and wrong ones.
#include <unistd.h>

#include "fake_kernel.h"

// out[i] = factor * in[i] for every thread i below n
KE_FAKE(scale, 8, 8, 4, 8) {
  (void)shared;
  const auto* in = argument<const float*>(arguments, 0);
  auto* out = argument<float*>(arguments, 1);
  const auto factor = static_cast<float>(argument<int32_t>(arguments, 2));
  const auto n = argument<int64_t>(arguments, 3);
  for (int64_t i = 0; i < threads(grid, block) && i < n; ++i) out[i] = factor * in[i];
}

// Writes to an input.
KE_FAKE(write_input, 8) {
  (void)grid, (void)block, (void)shared;
  *argument<float*>(arguments, 0) = 1;
}

// Touches what lies `bytes` from the begin of a tensor.
KE_FAKE(touch, 8, 8) {
  (void)grid, (void)block, (void)shared;
  *(argument<volatile char*>(arguments, 0) + argument<int64_t>(arguments, 1)) = 1;
}

KE_FAKE(hang, 8) {
  (void)grid, (void)block, (void)shared, (void)arguments;
  for (;;) pause();
}
