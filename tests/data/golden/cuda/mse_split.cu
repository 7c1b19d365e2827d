// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_mse_loss.
// Inputs: x float32[128, 4096], t float32[128, 4096].
// Outputs: y float32[].
//
// ke:scratch 512
// ke:launch kernel0_mse_loss_pass0 grid=(1, 128) block=(1024) shared=128 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_mse_loss_values grid=(1, 1) block=(1024) shared=128 args=(out0, in0, in1, scratch+0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_mse_loss: aten.mse_loss; aten.mse_loss.
// Schedule: 1024 threads a row, 1 rows a block, 4 neighbours at once; 128 parts a row, a launch a
// pass.
extern "C" __global__ void __launch_bounds__(1024) kernel0_mse_loss_pass0(float* __restrict__ y,
    const float* __restrict__ x, const float* __restrict__ t, char* __restrict__ scratchRoom) {
  const int memberIndex = (int)threadIdx.x % 1024;
  const int rowIndex = (int)blockIdx.x;
  const int partIndex = (int)blockIdx.y;
  float totalOf0 = 0.0f;
  const int lastGroup0 = (partIndex + 1) * 1024 < 131072 ? (partIndex + 1) * 1024 : 131072;
  for (int groupIndex = partIndex * 1024 + memberIndex; groupIndex < lastGroup0; groupIndex += 1024)
      {
    const int i_jFirst = groupIndex * 4;
    alignas(16) float xWide0[4];
    ke_copy<4>(xWide0, x + i_jFirst);
    alignas(16) float tWide1[4];
    ke_copy<4>(tWide1, t + i_jFirst);
    #pragma unroll
    for (int i_j = i_jFirst; i_j < i_jFirst + 4; ++i_j) {
      const float t_2 = xWide0[i_j - i_jFirst] - tWide1[i_j - i_jFirst];
      const float pow_3 = t_2 * t_2;
      totalOf0 = totalOf0 + pow_3;
    }
  }
  totalOf0 = ke_join<1024>(totalOf0, ke_shared(), [](float a, float b) { return (float)(a + b); });
  if (memberIndex == 0) {
    ((float*)(scratchRoom + 0))[rowIndex * 128 + partIndex] = totalOf0;
  }
}

extern "C" __global__ void __launch_bounds__(1024) kernel0_mse_loss_values(float* __restrict__ y,
    const float* __restrict__ x, const float* __restrict__ t, char* __restrict__ scratchRoom) {
  const int memberIndex = (int)threadIdx.x % 1024;
  const int rowIndex = (int)blockIdx.x;
  float totalOf0 = 0.0f;
  for (int otherPart = memberIndex; otherPart < 128; otherPart += 1024) {
    totalOf0 = totalOf0 + ((float*)(scratchRoom + 0))[rowIndex * 128 + otherPart];
  }
  totalOf0 = ke_join<1024>(totalOf0, ke_shared(), [](float a, float b) { return (float)(a + b); });
  const float sRow4 = totalOf0;
  const float div_5 = sRow4 / 524288.0f;
  const float yRow6 = div_5;
  if (memberIndex == 0) {
    y[0] = yRow6;
  }
}

