// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_cumsum.
// Inputs: x float32[999, 1500], m boolean[999, 1500].
// Outputs: y float32[999, 1500].
//
// ke:scratch 0
// ke:launch kernel0_cumsum grid=(999, 1) block=(64) shared=32 args=(out0, in0, in1)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_cumsum: aten.cumsum.default; aten.flip.default.
// Schedule: 64 threads share a row and scan it along j, from its end in tiles of 1024: 4 of 4
// neighbours a thread; blocks of 64 threads.
extern "C" __global__ void __launch_bounds__(64) kernel0_cumsum(float* __restrict__ y, const float*
    __restrict__ x, const bool* __restrict__ m) {
  const int rowIndex = (int)blockIdx.x;
  const int laneIndex = (int)threadIdx.x % 32;
  const int warpIndex = (int)threadIdx.x / 32;
  double* totalsPlace = (double*)ke_shared();
  const int i = rowIndex;
  const auto joinBoth = [](float a, float b) { return (float)(a + b); };
  double carryValue = 0.0f;
  for (int tileFirst = 0; tileFirst < 1500; tileFirst += 1024) {
    float valueGroup[4][4];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int placeIndex = tileFirst + ((warpIndex * 4 + turnIndex) * 32 + laneIndex) * 4;
      if (placeIndex < 1500) {
        const int jFirst = 1496 - placeIndex;
        alignas(16) float xWide0[4];
        ke_copy<4>(xWide0, x + i * 1500 + jFirst);
        alignas(16) bool mWide1[4];
        ke_copy<4>(mWide1, m + i * 1500 + jFirst);
        #pragma unroll
        for (int j = jFirst; j < jFirst + 4; ++j) {
          const float mul_2 = xWide0[j - jFirst] * (float)mWide1[j - jFirst];
          valueGroup[turnIndex][j - jFirst] = mul_2;
        }
      }
      else {
        #pragma unroll
        for (int k = 0; k < 4; ++k) valueGroup[turnIndex][k] = 0.0f;
      }
    }
    double warpTotal = 0.0f, beforeInWarp[4];
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      #pragma unroll
      for (int k = 2; k >= 0; --k) {
        valueGroup[turnIndex][k] = joinBoth(valueGroup[turnIndex][k + 1], valueGroup[turnIndex][k]);
      }
      const float upToHere = ke_scan_warp(valueGroup[turnIndex][0], joinBoth);
      float beforeHere = ke_from_lane(upToHere, laneIndex - 1);
      if (laneIndex == 0) beforeHere = 0.0f;
      beforeInWarp[turnIndex] = warpTotal + beforeHere;
      warpTotal = warpTotal + ke_from_lane(upToHere, 31);
    }
    if (laneIndex == 0) totalsPlace[warpIndex] = warpTotal;
    __syncthreads();
    double beforeWarp = carryValue;
    #pragma unroll
    for (int w = 0; w < 2; ++w) {
      if (w == warpIndex) beforeWarp = carryValue;
      carryValue = carryValue + totalsPlace[w];
    }
    totalsPlace = (double*)ke_shared() + (totalsPlace == (double*)ke_shared() ? 2 : 0);
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int placeIndex = tileFirst + ((warpIndex * 4 + turnIndex) * 32 + laneIndex) * 4;
      if (placeIndex < 1500) {
        const int jFirst = 1496 - placeIndex;
        const float beforeGroup = (float)(beforeWarp + beforeInWarp[turnIndex]);
        alignas(16) float yWide3[4];
        #pragma unroll
        for (int j = jFirst; j < jFirst + 4; ++j) {
          const float hereValue = joinBoth(beforeGroup, valueGroup[turnIndex][j - jFirst]);
          yWide3[j - jFirst] = hereValue;
        }
        ke_copy<4>(y + i * 1500 + jFirst, yWide3);
      }
    }
  }
}

