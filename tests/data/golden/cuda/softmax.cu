// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_softmax.
// Inputs: x float32[4096, 4096].
// Outputs: y float32[4096, 4096].
//
// ke:scratch 0
// ke:launch kernel0_softmax grid=(4096, 1) block=(128) shared=16 args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_softmax: aten._softmax.default; aten._softmax.default; aten._softmax.default.
// Schedule: 128 threads a row, 1 rows a block, which keep it in registers, 4 neighbours at once.
extern "C" __global__ void __launch_bounds__(128) kernel0_softmax(float* __restrict__ y, const
    float* __restrict__ x) {
  const int memberIndex = (int)threadIdx.x % 128;
  const int rowIndex = (int)blockIdx.x;
  const int i = rowIndex;
  alignas(16) float xKept0[8][4];
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int groupIndex = memberIndex + turnIndex * 128;
    const int jFirst = groupIndex * 4;
    ke_copy<4>(xKept0[turnIndex], x + i * 4096 + jFirst);
  }
  float totalOf0 = -ke_infinity_float();
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int groupIndex = memberIndex + turnIndex * 128;
    const int jFirst = groupIndex * 4;
    #pragma unroll
    for (int j = jFirst; j < jFirst + 4; ++j) {
      const float x_1 = xKept0[turnIndex][j - jFirst];
      totalOf0 = ke_maximum(totalOf0, x_1);
    }
  }
  totalOf0 = ke_join<128>(totalOf0, ke_shared(), [](float a, float b) { return (float)(ke_maximum(a,
      b)); });
  const float mRow2 = totalOf0;
  ke_sum<float> totalOf1Sum = {};
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int groupIndex = memberIndex + turnIndex * 128;
    const int jFirst = groupIndex * 4;
    float groupOf1 = 0.0f;
    #pragma unroll
    for (int j = jFirst; j < jFirst + 4; ++j) {
      const float exp_3 = ke_exp((xKept0[turnIndex][j - jFirst] - mRow2));
      groupOf1 = groupOf1 + exp_3;
    }
    totalOf1Sum = ke_add<float>(totalOf1Sum, groupOf1);
  }
  float totalOf1 = ke_value(totalOf1Sum);
  totalOf1 = ke_join<128>(totalOf1, ke_shared(), [](float a, float b) { return (float)(a + b); });
  const float sRow4 = totalOf1;
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int groupIndex = memberIndex + turnIndex * 128;
    const int jFirst = groupIndex * 4;
    alignas(16) float yWide5[4];
    #pragma unroll
    for (int j = jFirst; j < jFirst + 4; ++j) {
      const float div_6 = ke_exp((xKept0[turnIndex][j - jFirst] - mRow2)) / sRow4;
      yWide5[j - jFirst] = div_6;
    }
    ke_copy<4>(y + i * 4096 + jFirst, yWide5);
  }
}

