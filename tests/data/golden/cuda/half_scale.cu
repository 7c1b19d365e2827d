// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_mul.
// Inputs: x float16[64, 4096].
// Outputs: y float16[64, 4096].
//
// ke:scratch 0
// ke:launch kernel0_mul grid=(512, 1) block=(256) args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_mul: mul.
// Schedule: 2 of i_j a thread, 1 times; blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) kernel0_mul(uint16_t* __restrict__ y, const
    uint16_t* __restrict__ x) {
  const int itemIndex = (int)blockIdx.x * 256 + (int)threadIdx.x;
  const int i_jFirst = itemIndex * 2;
  alignas(16) uint16_t xWide0[2];
  ke_copy<2>(xWide0, x + i_jFirst);
  alignas(16) uint16_t yWide1[2];
  #pragma unroll
  for (int i_j = i_jFirst; i_j < i_jFirst + 2; ++i_j) {
    const float cast_2 = ke_round_f16((float)(ke_load_f16(&xWide0[i_j - i_jFirst]) * 0.5f));
    const float cast_3 = ke_round_f16((float)cast_2);
    yWide1[i_j - i_jFirst] = ke_bits_f16((float)cast_3);
  }
  ke_copy<2>(y + i_jFirst, yWide1);
}

