// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_argmax.
// Inputs: x float32[128, 256, 256].
// Outputs: y int64[128, 256].
//
// ke:scratch 0
// ke:launch kernel0_argmax grid=(1024, 1) block=(512) shared=8192 args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_argmax: aten.argmax.default.
// Schedule: 32 neighbouring threads take neighbouring rows, 16 times as many share them.
extern "C" __global__ void __launch_bounds__(512) kernel0_argmax(int64_t* __restrict__ y, const
    float* __restrict__ x) {
  const int memberIndex = (int)threadIdx.x / 32;
  const int j = (int)((int)blockIdx.x % 8) * 32 + (int)threadIdx.x % 32;
  const int outerIndex = (int)blockIdx.x / 8;
  const int n = outerIndex;
  ke_extreme<float> totalOf0 = {-ke_infinity_float(), INT64_MAX};
  int firstGroup0 = memberIndex;
  for (; firstGroup0 + 112 < 256; firstGroup0 += 128) {
    alignas(16) float xEarly0[8][1];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int groupIndex = firstGroup0 + turnIndex * 16;
      const int k = groupIndex;
      ke_copy<1>(xEarly0[turnIndex], x + n * 65536 + k * 256 + j);
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int groupIndex = firstGroup0 + turnIndex * 16;
      const int k = groupIndex;
      const float x_1 = xEarly0[turnIndex][0];
      totalOf0 = ke_argmax(totalOf0, ke_extreme<float>{x_1, (int64_t)k});
    }
  }
  totalOf0 = ke_join_column<16, 32>(totalOf0, ke_shared(), [](ke_extreme<float> a, ke_extreme<float>
      b) { return (ke_extreme<float>)(ke_argmax(a, b)); });
  const int64_t yRow2 = totalOf0.position;
  if (memberIndex == 0) {
    y[n * 256 + j] = yRow2;
  }
}

