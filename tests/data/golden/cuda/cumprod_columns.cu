// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_cumprod.
// Inputs: x float32[64, 100, 333].
// Outputs: y float32[64, 100, 333].
//
// ke:scratch 0
// ke:launch kernel0_cumprod grid=(333, 1) block=(64) args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_cumprod: aten.cumprod.
// Schedule: each thread scans a row of its own along i, 8 elements loaded together; blocks of 64
// threads.
extern "C" __global__ void __launch_bounds__(64) kernel0_cumprod(float* __restrict__ y, const float*
    __restrict__ x) {
  const int rowIndex = (int)blockIdx.x * 64 + (int)threadIdx.x;
  const int j = rowIndex % 333;
  const int n = rowIndex / 333;
  double carryValue = 1.0f;
  for (int tileFirst = 0; tileFirst < 100; tileFirst += 8) {
    float valueGroup[8][1];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int placeIndex = tileFirst + turnIndex;
      if (placeIndex < 100) {
        const int i = placeIndex;
        const float x_0 = x[n * 33300 + i * 333 + j];
        valueGroup[turnIndex][0] = x_0;
      }
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
      const int placeIndex = tileFirst + turnIndex;
      if (placeIndex < 100) {
        const int i = placeIndex;
        carryValue = carryValue * valueGroup[turnIndex][0];
        const double hereValue = carryValue;
        const float cast_1 = (float)hereValue;
        y[n * 33300 + i * 333 + j] = cast_1;
      }
    }
  }
}

