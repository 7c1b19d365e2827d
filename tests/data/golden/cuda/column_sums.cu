// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_sum.
// Inputs: x float32[128, 512, 4095].
// Outputs: y float32[128, 4095].
//
// ke:scratch 0
// ke:launch kernel0_sum grid=(4096, 1) block=(1024) shared=4096 args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_sum: aten.sum.dim_IntList.
// Schedule: 128 neighbouring threads take neighbouring rows, 8 times as many share them.
extern "C" __global__ void __launch_bounds__(1024) kernel0_sum(float* __restrict__ y, const float*
    __restrict__ x) {
  const int memberIndex = (int)threadIdx.x / 128;
  const int wantedColumn = (int)((int)blockIdx.x % 32) * 128 + (int)threadIdx.x % 128;
  const int j = wantedColumn < 4095 ? wantedColumn : 4094;
  const int outerIndex = (int)blockIdx.x / 32;
  const int i = outerIndex;
  ke_sum<float> totalOf0Sum = {};
  int firstGroup0 = memberIndex;
  for (; firstGroup0 + 56 < 512; firstGroup0 += 64) {
    alignas(16) float xEarly0[8][1];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int groupIndex = firstGroup0 + turnIndex * 8;
      const int k = groupIndex;
      ke_copy<1>(xEarly0[turnIndex], x + i * 2096640 + k * 4095 + j);
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int groupIndex = firstGroup0 + turnIndex * 8;
      const int k = groupIndex;
      const float x_1 = xEarly0[turnIndex][0];
      totalOf0Sum = ke_add<float>(totalOf0Sum, x_1);
    }
  }
  float totalOf0 = ke_value(totalOf0Sum);
  totalOf0 = ke_join_column<8, 128>(totalOf0, ke_shared(), [](float a, float b) { return (float)(a +
      b); });
  const float yRow2 = totalOf0;
  if (memberIndex == 0) {
    y[i * 4095 + j] = yRow2;
  }
}

