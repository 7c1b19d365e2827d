// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_addmm.
// Inputs: x float32[1024, 512], w float32[2048, 512], b float32[2048].
// Outputs: y float32[1024, 2048].
//
// ke:scratch 0
// ke:launch kernel0_addmm grid=(256, 1) block=(256) shared=25600 args=(out0, in0, in1, in2)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_addmm: aten.addmm.default; aten.relu.default.
// Schedule: m 1024, n 2048, k 512; blocks of 64 x 128, slices of 16, 4 x 8 sums a thread, 256
// threads, the next slice on its way.
extern "C" __global__ void __launch_bounds__(256) kernel0_addmm(float* __restrict__ y, const float*
    __restrict__ x, const float* __restrict__ w, const float* __restrict__ b) {
  const int threadIndex = (int)threadIdx.x;
  const int tileN = (int)blockIdx.x % 16;
  const int tileM = (int)blockIdx.x / 16 % 16;
  const int mBegin = tileM * 64, nBegin = tileN * 128;
  const int restOfBlock = (int)blockIdx.x / 256;
  const int kBegin = 0, kEnd = 512;
  const int threadN = threadIndex % 16, threadM = threadIndex / 16;
  float* const allSlices = (float*)ke_shared();
  float tileSums[32] = {};
  float nextA[4];
  float nextB[8];
  if (kBegin < kEnd) {
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 1; ++turnIndex) {
      const int placeIndex = turnIndex * 256 + threadIndex;
      const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
      const int m = mBegin + sliceRow;
      const int kFirst = kBegin + sliceDepth;
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) nextA[turnIndex * 4 + eachOne] = 0;
      if (m < 1024 && kFirst < kEnd) {
        alignas(16) float xWide0[4];
        ke_copy<4>(xWide0, x + m * 512 + kFirst);
        #pragma unroll
        for (int k = kFirst; k < kFirst + 4; ++k) {
          const float x_1 = xWide0[k - kFirst];
          nextA[turnIndex * 4 + k - kFirst] = x_1;
        }
      }
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 2; ++turnIndex) {
      const int placeIndex = turnIndex * 256 + threadIndex;
      const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
      const int n = nBegin + sliceRow;
      const int kFirst = kBegin + sliceDepth;
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) nextB[turnIndex * 4 + eachOne] = 0;
      if (n < 2048 && kFirst < kEnd) {
        alignas(16) float wWide2[4];
        ke_copy<4>(wWide2, w + n * 512 + kFirst);
        #pragma unroll
        for (int k = kFirst; k < kFirst + 4; ++k) {
          const float w_3 = wWide2[k - kFirst];
          nextB[turnIndex * 4 + k - kFirst] = w_3;
        }
      }
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 1; ++turnIndex) {
      const int placeIndex = turnIndex * 256 + threadIndex;
      const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
      float* const toSlice = allSlices + 0 * 3200 + sliceDepth * 68 + sliceRow;
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) toSlice[eachOne * 68] = nextA[turnIndex * 4 +
          eachOne];
    }
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 2; ++turnIndex) {
      const int placeIndex = turnIndex * 256 + threadIndex;
      const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
      float* const toSlice = allSlices + 0 * 3200 + 1088 + sliceDepth * 132 + sliceRow;
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) toSlice[eachOne * 132] = nextB[turnIndex * 4 +
          eachOne];
    }
  }
  __syncthreads();
  int sliceIndex = 0;
  for (int kSlice = kBegin; kSlice < kEnd; kSlice += 16) {
    const bool moreSlices = kSlice + 16 < kEnd;
    if (moreSlices) {
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 1; ++turnIndex) {
        const int placeIndex = turnIndex * 256 + threadIndex;
        const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
        const int m = mBegin + sliceRow;
        const int kFirst = kSlice + 16 + sliceDepth;
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) nextA[turnIndex * 4 + eachOne] = 0;
        if (m < 1024 && kFirst < kEnd) {
          alignas(16) float xWide4[4];
          ke_copy<4>(xWide4, x + m * 512 + kFirst);
          #pragma unroll
          for (int k = kFirst; k < kFirst + 4; ++k) {
            const float x_5 = xWide4[k - kFirst];
            nextA[turnIndex * 4 + k - kFirst] = x_5;
          }
        }
      }
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 2; ++turnIndex) {
        const int placeIndex = turnIndex * 256 + threadIndex;
        const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
        const int n = nBegin + sliceRow;
        const int kFirst = kSlice + 16 + sliceDepth;
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) nextB[turnIndex * 4 + eachOne] = 0;
        if (n < 2048 && kFirst < kEnd) {
          alignas(16) float wWide6[4];
          ke_copy<4>(wWide6, w + n * 512 + kFirst);
          #pragma unroll
          for (int k = kFirst; k < kFirst + 4; ++k) {
            const float w_7 = wWide6[k - kFirst];
            nextB[turnIndex * 4 + k - kFirst] = w_7;
          }
        }
      }
    }
    const float* const sliceA = allSlices + sliceIndex * 3200;
    const float* const sliceB = allSlices + sliceIndex * 3200 + 1088;
    #pragma unroll
    for (int sliceDepth = 0; sliceDepth < 16; ++sliceDepth) {
      alignas(16) float aWords[4], bWords[8];
      #pragma unroll
      for (int quadIndex = 0; quadIndex < 1; ++quadIndex) ke_copy<4>(aWords + 4 * quadIndex, sliceA
          + sliceDepth * 68 + quadIndex * 64 + threadM * 4);
      #pragma unroll
      for (int quadIndex = 0; quadIndex < 2; ++quadIndex) ke_copy<4>(bWords + 4 * quadIndex, sliceB
          + sliceDepth * 132 + quadIndex * 64 + threadN * 4);
      #pragma unroll
      for (int iSum = 0; iSum < 4; ++iSum) {
        #pragma unroll
        for (int jSum = 0; jSum < 8; ++jSum) tileSums[iSum * 8 + jSum] += aWords[iSum] *
            bWords[jSum];
      }
    }
    if (moreSlices) {
      sliceIndex = 1 - sliceIndex;
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 1; ++turnIndex) {
        const int placeIndex = turnIndex * 256 + threadIndex;
        const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
        float* const toSlice = allSlices + sliceIndex * 3200 + sliceDepth * 68 + sliceRow;
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) toSlice[eachOne * 68] = nextA[turnIndex * 4 +
            eachOne];
      }
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 2; ++turnIndex) {
        const int placeIndex = turnIndex * 256 + threadIndex;
        const int sliceRow = placeIndex / 4, sliceDepth = placeIndex % 4 * 4;
        float* const toSlice = allSlices + sliceIndex * 3200 + 1088 + sliceDepth * 132 + sliceRow;
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) toSlice[eachOne * 132] = nextB[turnIndex * 4 +
            eachOne];
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int iSum = 0; iSum < 4; ++iSum) {
    const int m = mBegin + iSum / 4 * 64 + threadM * 4 + iSum % 4;
    #pragma unroll
    for (int quadIndex = 0; quadIndex < 2; ++quadIndex) {
      const int nFirst = nBegin + quadIndex * 64 + threadN * 4;
      alignas(16) float bWide8[4];
      ke_copy<4>(bWide8, b + nFirst);
      alignas(16) float yWide9[4];
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float cast_10 = tileSums[iSum * 8 + quadIndex * 4 + n - nFirst];
        const float t_11 = cast_10 + bWide8[n - nFirst];
        const float maximum_12 = ke_maximum(t_11, 0.0f);
        yWide9[n - nFirst] = maximum_12;
      }
      ke_copy<4>(y + m * 2048 + nFirst, yWide9);
    }
  }
}

