// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_addmm.
// Inputs: x float32[1024, 512], w float32[2048, 512], b float32[2048].
// Outputs: y float32[1024, 2048].
//
// ke:scratch 6402048
// ke:launch kernel0_addmm_extents grid=(192, 1) block=(256) args=(out0, in0, in1, in2, scratch+0)
// ke:launch kernel0_addmm_pack grid=(192, 1) block=(256) shared=512 args=(out0, in0, in1, in2, scratch+0)
// ke:launch kernel0_addmm_product grid=(128, 1) block=(384) shared=197696 args=(out0, in0, in1, in2, scratch+0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_addmm: aten.addmm.default; aten.relu.default.
// Schedule: m 1024, n 2048, k 512 on tensor cores; fp32 operands as two fp16 parts each, three
// products; tiles of 128 x 128, 3 slices of 64 in shared memory.
extern "C" __global__ void __launch_bounds__(256) kernel0_addmm_extents(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, char*
    __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 64u) {
    const int blockRest = (int)blockIdx.x;
    const int partOfK = blockRest % 8;
    const int rowBlock = blockRest / 8 % 8;
    const int restOfBlock = blockRest / 64;
    const int tileRows = restOfBlock * 8 + rowBlock;
    const int kBegin = partOfK * 64;
    const int kEnd = kBegin + 64 < 512 ? kBegin + 64 : 512;
    uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C(2101248)) + ((int64_t)tileRows * 8
        + partOfK) * 128;
    for (int rowIndex = threadIndex / 32; rowIndex < 128; rowIndex += 8) {
      const int m = rowBlock * 128 + rowIndex;
      uint32_t rowMost = 0;
      if (m < 1024) {
        #pragma unroll 4
        for (int kFirst = kBegin + threadIndex % 32 * 4; kFirst < kEnd; kFirst += 128) {
          uint32_t eachMagnitude[4];
          alignas(16) float xWide0[4];
          ke_copy<4>(xWide0, x + m * 512 + kFirst);
          #pragma unroll
          for (int k = kFirst; k < kFirst + 4; ++k) {
            const float x_1 = xWide0[k - kFirst];
            eachMagnitude[k - kFirst] = ke_magnitude(x_1);
          }
          #pragma unroll
          for (int eachOne = 0; eachOne < 4; ++eachOne) rowMost = ke_greater(rowMost,
              eachMagnitude[eachOne]);
        }
      }
      rowMost = ke_join<32>(rowMost, ke_shared(), [](uint32_t a, uint32_t b) { return ke_greater(a,
          b); });
      if (threadIndex % 32 == 0) toExtents[rowIndex] = rowMost;
    }
    return;
  }
  const int blockRest = (int)(blockIdx.x - 64u);
  const int partOfK = blockRest % 8;
  const int rowBlock = blockRest / 8 % 16;
  const int restOfBlock = blockRest / 128;
  const int tileRows = restOfBlock * 16 + rowBlock;
  const int kBegin = partOfK * 64;
  const int kEnd = kBegin + 64 < 512 ? kBegin + 64 : 512;
  uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C(6336512)) + ((int64_t)tileRows * 8 +
      partOfK) * 128;
  for (int rowIndex = threadIndex / 32; rowIndex < 128; rowIndex += 8) {
    const int n = rowBlock * 128 + rowIndex;
    uint32_t rowMost = 0;
    if (n < 2048) {
      #pragma unroll 4
      for (int kFirst = kBegin + threadIndex % 32 * 4; kFirst < kEnd; kFirst += 128) {
        uint32_t eachMagnitude[4];
        alignas(16) float wWide2[4];
        ke_copy<4>(wWide2, w + n * 512 + kFirst);
        #pragma unroll
        for (int k = kFirst; k < kFirst + 4; ++k) {
          const float w_3 = wWide2[k - kFirst];
          eachMagnitude[k - kFirst] = ke_magnitude(w_3);
        }
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) rowMost = ke_greater(rowMost,
            eachMagnitude[eachOne]);
      }
    }
    rowMost = ke_join<32>(rowMost, ke_shared(), [](uint32_t a, uint32_t b) { return ke_greater(a,
        b); });
    if (threadIndex % 32 == 0) toExtents[rowIndex] = rowMost;
  }
}

extern "C" __global__ void __launch_bounds__(256) kernel0_addmm_pack(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, char*
    __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 64u) {
    const int blockRest = (int)blockIdx.x;
    const int kSlice = blockRest % 8;
    const int rowBlock = blockRest / 8 % 8;
    const int restOfBlock = blockRest / 64;
    const int tileRows = restOfBlock * 8 + rowBlock;
    float* const rowScales = (float*)ke_shared();
    if (threadIndex < 128) {
      const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C(2101248)) +
          (int64_t)tileRows * 1024 + threadIndex;
      uint32_t rowMost = fromExtents[0];
      #pragma unroll
      for (int partIndex = 1; partIndex < 8; ++partIndex) rowMost = ke_greater(rowMost,
          fromExtents[partIndex * 128]);
      float rowInverse;
      ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);
      if (kSlice == 0) ((float*)(scratchRoom + INT64_C(2097152)))[(int64_t)tileRows * 128 +
          threadIndex] = rowInverse;
    }
    __syncthreads();
    char* const toTile = scratchRoom + INT64_C(0) + ((int64_t)tileRows * 8 + kSlice) * 32768;
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;
      alignas(16) float eightOfK[8] = {};
      const int m = rowBlock * 128 + rowIndex;
      #pragma unroll
      for (int groupIndex = 0; groupIndex < 2; ++groupIndex) {
        const int kFirst = kSlice * 64 + pieceIndex * 8 + groupIndex * 4;
        if (m < 1024 && kFirst < 512) {
          alignas(16) float xWide4[4];
          ke_copy<4>(xWide4, x + m * 512 + kFirst);
          #pragma unroll
          for (int k = kFirst; k < kFirst + 4; ++k) {
            const float x_5 = xWide4[k - kFirst];
            eightOfK[groupIndex * 4 + k - kFirst] = x_5;
          }
        }
      }
      ke_pack_f16<2>(toTile + ke_tile_place(rowIndex, pieceIndex), eightOfK, rowScales[rowIndex]);
    }
    return;
  }
  const int blockRest = (int)(blockIdx.x - 64u);
  const int kSlice = blockRest % 8;
  const int rowBlock = blockRest / 8 % 16;
  const int restOfBlock = blockRest / 128;
  const int tileRows = restOfBlock * 16 + rowBlock;
  float* const rowScales = (float*)ke_shared();
  if (threadIndex < 128) {
    const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C(6336512)) +
        (int64_t)tileRows * 1024 + threadIndex;
    uint32_t rowMost = fromExtents[0];
    #pragma unroll
    for (int partIndex = 1; partIndex < 8; ++partIndex) rowMost = ke_greater(rowMost,
        fromExtents[partIndex * 128]);
    float rowInverse;
    ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);
    if (kSlice == 0) ((float*)(scratchRoom + INT64_C(6328320)))[(int64_t)tileRows * 128 +
        threadIndex] = rowInverse;
  }
  __syncthreads();
  char* const toTile = scratchRoom + INT64_C(2134016) + ((int64_t)tileRows * 8 + kSlice) * 32768;
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
    const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;
    alignas(16) float eightOfK[8] = {};
    const int n = rowBlock * 128 + rowIndex;
    #pragma unroll
    for (int groupIndex = 0; groupIndex < 2; ++groupIndex) {
      const int kFirst = kSlice * 64 + pieceIndex * 8 + groupIndex * 4;
      if (n < 2048 && kFirst < 512) {
        alignas(16) float wWide6[4];
        ke_copy<4>(wWide6, w + n * 512 + kFirst);
        #pragma unroll
        for (int k = kFirst; k < kFirst + 4; ++k) {
          const float w_7 = wWide6[k - kFirst];
          eightOfK[groupIndex * 4 + k - kFirst] = w_7;
        }
      }
    }
    ke_pack_f16<2>(toTile + ke_tile_place(rowIndex, pieceIndex), eightOfK, rowScales[rowIndex]);
  }
}


extern "C" __global__ void __launch_bounds__(384, 1) kernel0_addmm_product(float* __restrict__ y,
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, char*
    __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  const int tileIndex = (int)blockIdx.x % 128;
  const int firstOfGroup = tileIndex / 128 * 8;
  const int sizeOfGroup = 8;
  const int indexInGroup = tileIndex % 128;
  const int tileM = firstOfGroup + indexInGroup % sizeOfGroup, tileN = indexInGroup / sizeOfGroup;
  const int restOfBlock = (int)blockIdx.x / 128;
  const int mBegin = tileM * 128, nBegin = tileN * 128;
  char* const allStages = ke_shared_tiles();
  uint64_t* const stageFull = (uint64_t*)(allStages + 196608);
  uint64_t* const stageEmpty = stageFull + 3, *const allDone = stageFull + 6;
  if (threadIndex == 0) {
    for (int stageAt = 0; stageAt < 3; ++stageAt) {
      ke_barrier_make(stageFull + stageAt, 1);
      ke_barrier_make(stageEmpty + stageAt, 8);
    }
    ke_barrier_make(allDone, 8);
    ke_barriers_made();
  }
  __syncthreads();
  if (threadIndex < 128) {
    ke_fewer_registers<24>();
    if (threadIndex == 0) {
      const char* const fromA = scratchRoom + INT64_C(0) + ((int64_t)restOfBlock * 8 + tileM) *
          262144;
      const char* const fromB = scratchRoom + INT64_C(2134016) + ((int64_t)restOfBlock * 16 + tileN)
          * 262144;
      int stageIndex = 0, stageParity = 1;
      for (int kSlice = 0; kSlice < 8; ++kSlice) {
        if (kSlice >= 3) ke_barrier_wait(stageEmpty + stageIndex, stageParity);
        char* const toStage = allStages + stageIndex * 65536;
        ke_barrier_expect(stageFull + stageIndex, 65536);
        ke_bulk_copy(toStage, fromA + (int64_t)kSlice * 32768, 32768, stageFull + stageIndex);
        ke_bulk_copy(toStage + 32768, fromB + (int64_t)kSlice * 32768, 32768, stageFull +
            stageIndex);
        if (++stageIndex == 3) stageIndex = 0, stageParity ^= 1;
      }
    }
  } else {
    ke_more_registers<240>();
    const int groupIndex = threadIndex / 128 - 1, warpIndex = threadIndex / 32 - 4;
    const int laneIndex = threadIndex % 32;
    float mainSums[64] = {}, tileSums[64] = {};
    float crossSums[64] = {};
    int stageIndex = 0, stageParity = 0;
    for (int kSlice = 0; kSlice < 8; ++kSlice) {
      ke_barrier_wait(stageFull + stageIndex, stageParity);
      const char* const fromStage = allStages + stageIndex * 65536;
      const uint64_t tileA = ke_tile(fromStage + groupIndex * 8192);
      const uint64_t tileB = ke_tile(fromStage + 32768);
      ke_products_begin();
      #pragma unroll
      for (int stepOfK = 0; stepOfK < 4; ++stepOfK) ke_product_f16(mainSums, tileA + 2 * stepOfK,
          tileB + 2 * stepOfK, stepOfK > 0);
      ke_products_commit();
      #pragma unroll
      for (int stepOfK = 0; stepOfK < 4; ++stepOfK) {
        ke_product_f16(crossSums, tileA + 2 * stepOfK, tileB + 1024 + 2 * stepOfK, 1);
        ke_product_f16(crossSums, tileA + 1024 + 2 * stepOfK, tileB + 2 * stepOfK, 1);
      }
      ke_products_commit();
      ke_products_wait<1>();
      #pragma unroll
      for (int eachOne = 0; eachOne < 64; ++eachOne) tileSums[eachOne] += mainSums[eachOne];
      ke_products_wait<0>();
      if (laneIndex == 0) ke_barrier_arrive(stageEmpty + stageIndex);
      if (++stageIndex == 3) stageIndex = 0, stageParity ^= 1;
    }
    ke_products_wait<0>();
    if (laneIndex == 0) ke_barrier_arrive(allDone);
    ke_barrier_wait(allDone, 0);
    float* const warpSums = (float*)allStages + warpIndex * 2176;
    int lacksParts = 0;
    #pragma unroll
    for (int pairIndex = 0; pairIndex < 32; ++pairIndex) {
      alignas(8) float pairOfSums[2];
      #pragma unroll
      for (int eachOne = 0; eachOne < 2; ++eachOne) pairOfSums[eachOne] = tileSums[pairIndex * 2 +
          eachOne] + crossSums[pairIndex * 2 + eachOne] * (1.0f / 2048);
      lacksParts |= pairOfSums[0] != pairOfSums[0] || pairOfSums[1] != pairOfSums[1] ? 1 : 0;
      ke_copy<2>(warpSums + (laneIndex / 4 + pairIndex % 2 * 8) * 136 + pairIndex / 2 * 8 +
          laneIndex % 4 * 2, pairOfSums);
    }
    lacksParts = ke_join<32>(lacksParts, ke_shared(), [](int a, int b) { return a | b; });
    __syncwarp();
    const float* const inverseA = (const float*)(scratchRoom + INT64_C(2097152)) +
        ((int64_t)restOfBlock * 8 + tileM) * 128;
    const float* const inverseB = (const float*)(scratchRoom + INT64_C(6328320)) +
        ((int64_t)restOfBlock * 16 + tileN) * 128;
    float columnInverses[4];
    #pragma unroll
    for (int eachOne = 0; eachOne < 4; ++eachOne) {
      columnInverses[eachOne] = inverseB[laneIndex * 4 + eachOne];
    }
    if (lacksParts != 0) {
      #pragma unroll 1
      for (int rowIndex = 0; rowIndex < 16; ++rowIndex) {
        const int m = mBegin + warpIndex * 16 + rowIndex;
        alignas(16) float rowSums[4];
        ke_copy<4>(rowSums, warpSums + rowIndex * 136 + laneIndex * 4);
        const float rowInverse = inverseA[warpIndex * 16 + rowIndex];
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] *
            rowInverse * columnInverses[eachOne];
        const float sumOfFour = rowSums[0] + rowSums[1] + rowSums[2] + rowSums[3];
        if (sumOfFour != sumOfFour) {
          float plainSums[4] = {};
          #pragma unroll 1
          for (int kBegin = 0; kBegin < 512; kBegin += 64) {
            float partSums[4] = {};
            const int kEnd = kBegin + 64 < 512 ? kBegin + 64 : 512;
            #pragma unroll 1
            for (int k = kBegin; k < kEnd; ++k) {
              const float x_8 = x[m * 512 + k];
              const float leftFactor = x_8;
              #pragma unroll
              for (int eachOne = 0; eachOne < 4; ++eachOne) {
                const int columnAt = nBegin + laneIndex * 4 + eachOne;
                const int n = columnAt;
                const float w_9 = w[n * 512 + k];
                partSums[eachOne] += leftFactor * w_9;
              }
            }
            #pragma unroll
            for (int eachOne = 0; eachOne < 4; ++eachOne) plainSums[eachOne] += partSums[eachOne];
          }
          #pragma unroll
          for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] !=
              rowSums[eachOne] ? plainSums[eachOne] : rowSums[eachOne];
        }
        ke_copy<4>(warpSums + rowIndex * 136 + laneIndex * 4, rowSums);
      }
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) columnInverses[eachOne] = 1.0f;
    }
    #pragma unroll 2
    for (int rowIndex = 0; rowIndex < 16; ++rowIndex) {
      const int m = mBegin + warpIndex * 16 + rowIndex;
      alignas(16) float rowSums[4];
      ke_copy<4>(rowSums, warpSums + rowIndex * 136 + laneIndex * 4);
      const float rowInverse = lacksParts != 0 ? 1.0f : inverseA[warpIndex * 16 + rowIndex];
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] * rowInverse
          * columnInverses[eachOne];
      const int nFirst = nBegin + laneIndex * 4;
      alignas(16) float bWide10[4];
      ke_copy<4>(bWide10, b + nFirst);
      alignas(16) float yWide11[4];
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float cast_12 = rowSums[n - nFirst];
        const float t_13 = cast_12 + bWide10[n - nFirst];
        const float maximum_14 = ke_maximum(t_13, 0.0f);
        yWide11[n - nFirst] = maximum_14;
      }
      ke_copy<4>(y + m * 2048 + nFirst, yWide11);
    }
  }
}

