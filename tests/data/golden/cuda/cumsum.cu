// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_cumsum.
// Inputs: x float32[2048, 32768].
// Outputs: y float32[2048, 32768].
//
// ke:scratch 0
// ke:launch kernel0_cumsum grid=(2048, 1) block=(256) shared=128 args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_cumsum: aten.cumsum.default.
// Schedule: 256 threads share a row and scan it along j in tiles of 4096: 4 of 4 neighbours a
// thread; blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) kernel0_cumsum(float* __restrict__ y, const float*
    __restrict__ x) {
  const int rowIndex = (int)blockIdx.x;
  const int laneIndex = (int)threadIdx.x % 32;
  const int warpIndex = (int)threadIdx.x / 32;
  double* totalsPlace = (double*)ke_shared();
  const int i = rowIndex;
  const auto joinBoth = [](float a, float b) { return (float)(a + b); };
  double carryValue = 0.0f;
  for (int tileFirst = 0; tileFirst < 32768; tileFirst += 4096) {
    float valueGroup[4][4];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int placeIndex = tileFirst + ((warpIndex * 4 + turnIndex) * 32 + laneIndex) * 4;
      const int jFirst = placeIndex;
      alignas(16) float xWide0[4];
      ke_copy<4>(xWide0, x + i * 32768 + jFirst);
      #pragma unroll
      for (int j = jFirst; j < jFirst + 4; ++j) {
        const float x_1 = xWide0[j - jFirst];
        valueGroup[turnIndex][j - jFirst] = x_1;
      }
    }
    double warpTotal = 0.0f, beforeInWarp[4];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      #pragma unroll
      for (int k = 1; k < 4; ++k) {
        valueGroup[turnIndex][k] = joinBoth(valueGroup[turnIndex][k - 1], valueGroup[turnIndex][k]);
      }
      const float upToHere = ke_scan_warp(valueGroup[turnIndex][3], joinBoth);
      float beforeHere = ke_from_lane(upToHere, laneIndex - 1);
      if (laneIndex == 0) beforeHere = 0.0f;
      beforeInWarp[turnIndex] = warpTotal + beforeHere;
      warpTotal = warpTotal + ke_from_lane(upToHere, 31);
    }
    if (laneIndex == 0) totalsPlace[warpIndex] = warpTotal;
    __syncthreads();
    double beforeWarp = carryValue;
    #pragma unroll
    for (int w = 0; w < 8; ++w) {
      if (w == warpIndex) beforeWarp = carryValue;
      carryValue = carryValue + totalsPlace[w];
    }
    totalsPlace = (double*)ke_shared() + (totalsPlace == (double*)ke_shared() ? 8 : 0);
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int placeIndex = tileFirst + ((warpIndex * 4 + turnIndex) * 32 + laneIndex) * 4;
      const int jFirst = placeIndex;
      const float beforeGroup = (float)(beforeWarp + beforeInWarp[turnIndex]);
      alignas(16) float yWide2[4];
      #pragma unroll
      for (int j = jFirst; j < jFirst + 4; ++j) {
        const float hereValue = joinBoth(beforeGroup, valueGroup[turnIndex][j - jFirst]);
        yWide2[j - jFirst] = hereValue;
      }
      ke_copy<4>(y + i * 32768 + jFirst, yWide2);
    }
  }
}

