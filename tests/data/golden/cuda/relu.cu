// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_relu.
// Inputs: x float32[16, 16384].
// Outputs: y float32[16, 16384].
//
// ke:scratch 0
// ke:launch kernel0_relu grid=(512, 1) block=(256) args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_relu: aten.relu.default.
// Schedule: 2 of i_j a thread, 1 times; blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) kernel0_relu(float* __restrict__ y, const float*
    __restrict__ x) {
  const int itemIndex = (int)blockIdx.x * 256 + (int)threadIdx.x;
  const int i_jFirst = itemIndex * 2;
  alignas(16) float xWide0[2];
  ke_copy<2>(xWide0, x + i_jFirst);
  alignas(16) float yWide1[2];
  #pragma unroll
  for (int i_j = i_jFirst; i_j < i_jFirst + 2; ++i_j) {
    const float t_2 = xWide0[i_j - i_jFirst];
    const float maximum_3 = ke_maximum(t_2, 0.0f);
    yWide1[i_j - i_jFirst] = maximum_3;
  }
  ke_copy<2>(y + i_jFirst, yWide1);
}

