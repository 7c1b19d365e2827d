// SPDX-License-Identifier: Apache-2.0
//
// Case 0: Runs case0_kernel0_sum.
// Inputs: x float32[1024, 64], b float32[1].
// Outputs: y float32[1024].
//
// Case 1: Runs case1_kernel0_sum.
// Inputs: x float32[1, 1], b float32[1].
// Outputs: y float32[1].
//
// Case 2: Runs case2_kernel0_sum.
// Inputs: x float32[0, 64], b float32[1].
// Outputs: y float32[0].
//
// ke:case in0.ndim == 2 && in0[0] == 1024 && in0[1] == 64
// ke:scratch 0
// ke:launch case0_kernel0_sum grid=(1024, 1) block=(64) shared=8 args=(out0, in0, in1)
// ke:case in0.ndim == 2 && in0[0] == 1 && in0[1] == 1
// ke:scratch 0
// ke:launch case1_kernel0_sum grid=(1, 1) block=(256) args=(out0, in0, in1)
// ke:case in0.ndim == 2 && in0[0] == 0 && in0[1] == 64
// ke:scratch 0
#include <stdint.h>

#include "kernelevolve/device.h"

namespace case0 {

// case0_kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Schedule: 64 threads a row, 1 rows a block, 4 neighbours at once.
extern "C" __global__ void __launch_bounds__(64) case0_kernel0_sum(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ b) {
  const int memberIndex = (int)threadIdx.x % 64;
  const int rowIndex = (int)blockIdx.x;
  const int i = rowIndex;
  float totalOf0 = 0.0f;
  for (int groupIndex = memberIndex; groupIndex < 16; groupIndex += 64) {
    const int jFirst = groupIndex * 4;
    alignas(16) float xWide0[4];
    ke_copy<4>(xWide0, x + i * 64 + jFirst);
    #pragma unroll
    for (int j = jFirst; j < jFirst + 4; ++j) {
      const float x_1 = xWide0[j - jFirst];
      totalOf0 = totalOf0 + x_1;
    }
  }
  totalOf0 = ke_join<64>(totalOf0, ke_shared(), [](float a, float b) { return (float)(a + b); });
  const float sRow2 = totalOf0;
  const float add_3 = sRow2 + b[0];
  const float yRow4 = add_3;
  if (memberIndex == 0) {
    y[i] = yRow4;
  }
}

}  // namespace case0

namespace case1 {

// case1_kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Schedule: 1 threads a row, 256 rows a block.
extern "C" __global__ void __launch_bounds__(256) case1_kernel0_sum(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ b) {
  const int memberIndex = (int)threadIdx.x % 1;
  const int wantedRow = (int)blockIdx.x * 256 + (int)threadIdx.x / 1;
  const int rowIndex = wantedRow < 1 ? wantedRow : 0;
  float totalOf0 = 0.0f;
  for (int groupIndex = memberIndex; groupIndex < 1; groupIndex += 1) {
    const int j = groupIndex;
    const float x_0 = x[0];
    totalOf0 = totalOf0 + x_0;
  }
  const float sRow1 = totalOf0;
  const float add_2 = sRow1 + b[0];
  const float yRow3 = add_2;
  if (memberIndex == 0) {
    y[0] = yRow3;
  }
}

}  // namespace case1

namespace case2 {

// case2_kernel0_sum: aten.sum.dim_IntList; aten.add.Tensor.
// Nothing to compute.

}  // namespace case2

