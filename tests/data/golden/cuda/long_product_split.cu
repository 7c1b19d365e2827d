// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_mm.
// Inputs: x float32[192, 65536], w float32[65536, 256].
// Outputs: y float32[192, 256].
//
// ke:scratch 142739456
// ke:launch kernel0_mm_extents grid=(256, 1) block=(256) shared=4096 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_mm_pack grid=(4096, 1) block=(256) shared=33280 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_mm_product grid=(128, 1) block=(384) shared=197696 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_mm_combine grid=(64, 1) block=(256) args=(out0, in0, in1, scratch+0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_mm: aten.mm.default.
// Schedule: m 192, n 256, k 65536 on tensor cores; fp32 operands as two fp16 parts each, three
// products; tiles of 128 x 128, k in 32 parts, 3 slices of 64 in shared memory.
extern "C" __global__ void __launch_bounds__(256) kernel0_mm_extents(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 128u) {
    const int blockRest = (int)blockIdx.x;
    const int partOfK = blockRest % 64;
    const int rowBlock = blockRest / 64 % 2;
    const int restOfBlock = blockRest / 128;
    const int tileRows = restOfBlock * 2 + rowBlock;
    const int kBegin = partOfK * 1024;
    const int kEnd = kBegin + 1024 < 65536 ? kBegin + 1024 : 65536;
    uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C(67109888)) + ((int64_t)tileRows *
        64 + partOfK) * 128;
    for (int rowIndex = threadIndex / 32; rowIndex < 128; rowIndex += 8) {
      const int m = rowBlock * 128 + rowIndex;
      uint32_t rowMost = 0;
      if (m < 192) {
        #pragma unroll 4
        for (int kFirst = kBegin + threadIndex % 32 * 4; kFirst < kEnd; kFirst += 128) {
          uint32_t eachMagnitude[4];
          alignas(16) float xWide0[4];
          ke_copy<4>(xWide0, x + m * 65536 + kFirst);
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
  const int blockRest = (int)(blockIdx.x - 128u);
  const int partOfK = blockRest % 64;
  const int rowBlock = blockRest / 64 % 2;
  const int restOfBlock = blockRest / 128;
  const int tileRows = restOfBlock * 2 + rowBlock;
  const int kBegin = partOfK * 1024;
  const int kEnd = kBegin + 1024 < 65536 ? kBegin + 1024 : 65536;
  uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C(134285312)) + ((int64_t)tileRows *
      64 + partOfK) * 128;
  uint32_t* const sharedExtents = (uint32_t*)ke_shared();
  const int rowIndex = threadIndex % 32 * 4;
  const int nFirst = rowBlock * 128 + rowIndex;
  uint32_t eachMost[4] = {};
  if (nFirst < 256) {
    #pragma unroll 4
    for (int k = kBegin + threadIndex / 32; k < kEnd; k += 8) {
      float eachValue[4];
      alignas(16) float wWide2[4];
      ke_copy<4>(wWide2, w + k * 256 + nFirst);
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float w_3 = wWide2[n - nFirst];
        eachValue[n - nFirst] = w_3;
      }
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) eachMost[eachOne] =
          ke_greater(eachMost[eachOne], ke_magnitude(eachValue[eachOne]));
    }
  }
  #pragma unroll
  for (int eachOne = 0; eachOne < 4; ++eachOne) sharedExtents[threadIndex / 32 * 128 + rowIndex +
      eachOne] = eachMost[eachOne];
  __syncthreads();
  if (threadIndex < 128) {
    uint32_t rowMost = sharedExtents[threadIndex];
    #pragma unroll
    for (int eachOne = 1; eachOne < 8; ++eachOne) rowMost = ke_greater(rowMost,
        sharedExtents[eachOne * 128 + threadIndex]);
    toExtents[threadIndex] = rowMost;
  }
}

extern "C" __global__ void __launch_bounds__(256) kernel0_mm_pack(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 2048u) {
    const int blockRest = (int)blockIdx.x;
    const int kSlice = blockRest % 1024;
    const int rowBlock = blockRest / 1024 % 2;
    const int restOfBlock = blockRest / 2048;
    const int tileRows = restOfBlock * 2 + rowBlock;
    float* const rowScales = (float*)ke_shared();
    if (threadIndex < 128) {
      const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C(67109888)) +
          (int64_t)tileRows * 8192 + threadIndex;
      uint32_t rowMost = fromExtents[0];
      #pragma unroll 16
      for (int partIndex = 1; partIndex < 64; ++partIndex) rowMost = ke_greater(rowMost,
          fromExtents[partIndex * 128]);
      float rowInverse;
      ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);
      if (kSlice == 0) ((float*)(scratchRoom + INT64_C(67108864)))[(int64_t)tileRows * 128 +
          threadIndex] = rowInverse;
    }
    __syncthreads();
    char* const toTile = scratchRoom + INT64_C(0) + ((int64_t)tileRows * 1024 + kSlice) * 32768;
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;
      alignas(16) float eightOfK[8] = {};
      const int m = rowBlock * 128 + rowIndex;
      #pragma unroll
      for (int groupIndex = 0; groupIndex < 2; ++groupIndex) {
        const int kFirst = kSlice * 64 + pieceIndex * 8 + groupIndex * 4;
        if (m < 192 && kFirst < 65536) {
          alignas(16) float xWide4[4];
          ke_copy<4>(xWide4, x + m * 65536 + kFirst);
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
  const int blockRest = (int)(blockIdx.x - 2048u);
  const int kSlice = blockRest % 1024;
  const int rowBlock = blockRest / 1024 % 2;
  const int restOfBlock = blockRest / 2048;
  const int tileRows = restOfBlock * 2 + rowBlock;
  float* const rowScales = (float*)ke_shared();
  if (threadIndex < 128) {
    const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C(134285312)) +
        (int64_t)tileRows * 8192 + threadIndex;
    uint32_t rowMost = fromExtents[0];
    #pragma unroll 16
    for (int partIndex = 1; partIndex < 64; ++partIndex) rowMost = ke_greater(rowMost,
        fromExtents[partIndex * 128]);
    float rowInverse;
    ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);
    if (kSlice == 0) ((float*)(scratchRoom + INT64_C(134284288)))[(int64_t)tileRows * 128 +
        threadIndex] = rowInverse;
  }
  char* const toTile = scratchRoom + INT64_C(67175424) + ((int64_t)tileRows * 1024 + kSlice) *
      32768;
  float* const turnedRows = rowScales + 128;
  #pragma unroll 8
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int placeIndex = turnIndex * 256 + threadIndex;
    const int rowIndex = placeIndex % 32 * 4, depthIndex = placeIndex / 32;
    const int nFirst = rowBlock * 128 + rowIndex;
    const int k = kSlice * 64 + depthIndex;
    alignas(16) float eachValue[4] = {};
    if (nFirst < 256 && k < 65536) {
      alignas(16) float wWide6[4];
      ke_copy<4>(wWide6, w + k * 256 + nFirst);
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float w_7 = wWide6[n - nFirst];
        eachValue[n - nFirst] = w_7;
      }
    }
    ke_copy<4>(turnedRows + depthIndex * 128 + (rowIndex ^ depthIndex / 8 * 4), eachValue);
  }
  __syncthreads();
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
    const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;
    alignas(16) float eightOfK[8];
    #pragma unroll
    for (int eachOne = 0; eachOne < 8; ++eachOne) eightOfK[eachOne] = turnedRows[(pieceIndex * 8 +
        eachOne) * 128 + (rowIndex ^ pieceIndex * 4)];
    ke_pack_f16<2>(toTile + ke_tile_place(rowIndex, pieceIndex), eightOfK, rowScales[rowIndex]);
  }
}


extern "C" __global__ void __launch_bounds__(384, 1) kernel0_mm_product(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  const int tileOfAll = (int)blockIdx.x % 4, partOfK = (int)blockIdx.x / 4;
  const int tileIndex = tileOfAll % 4;
  const int firstOfGroup = tileIndex / 4 * 2;
  const int sizeOfGroup = 2;
  const int indexInGroup = tileIndex % 4;
  const int tileM = firstOfGroup + indexInGroup % sizeOfGroup, tileN = indexInGroup / sizeOfGroup;
  const int restOfBlock = tileOfAll / 4;
  const int sliceBegin = partOfK * 32;
  const int sliceEnd = sliceBegin + 32;
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
      const char* const fromA = scratchRoom + INT64_C(0) + ((int64_t)restOfBlock * 2 + tileM) *
          33554432;
      const char* const fromB = scratchRoom + INT64_C(67175424) + ((int64_t)restOfBlock * 2 + tileN)
          * 33554432;
      int stageIndex = 0, stageParity = 1;
      for (int kSlice = sliceBegin; kSlice < sliceEnd; ++kSlice) {
        if (kSlice - sliceBegin >= 3) ke_barrier_wait(stageEmpty + stageIndex, stageParity);
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
    for (int kSlice = sliceBegin; kSlice < sliceEnd; ++kSlice) {
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
    float* const warpSums = (float*)(scratchRoom + INT64_C(134350848)) + (int64_t)blockIdx.x * 16384
        + warpIndex * 2048;
    #pragma unroll
    for (int pairIndex = 0; pairIndex < 32; ++pairIndex) {
      alignas(8) float pairOfSums[2];
      #pragma unroll
      for (int eachOne = 0; eachOne < 2; ++eachOne) pairOfSums[eachOne] = tileSums[pairIndex * 2 +
          eachOne] + crossSums[pairIndex * 2 + eachOne] * (1.0f / 2048);
      ke_copy<2>(warpSums + (laneIndex / 4 + pairIndex % 2 * 8) * 128 + pairIndex / 2 * 8 +
          laneIndex % 4 * 2, pairOfSums);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) kernel0_mm_combine(float* __restrict__ y, const
    float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int laneIndex = (int)threadIdx.x % 32, warpIndex = (int)threadIdx.x / 32;
  const int tileOfAll = (int)blockIdx.x / 16;
  const int rowIndex = (int)blockIdx.x % 16 * 8 + warpIndex;
  const int tileIndex = tileOfAll % 4;
  const int firstOfGroup = tileIndex / 4 * 2;
  const int sizeOfGroup = 2;
  const int indexInGroup = tileIndex % 4;
  const int tileM = firstOfGroup + indexInGroup % sizeOfGroup, tileN = indexInGroup / sizeOfGroup;
  const int restOfBlock = tileOfAll / 4;
  const int mBegin = tileM * 128, nBegin = tileN * 128;
  const int m = mBegin + rowIndex;
  if (m >= 192) return;
  const float* const inverseA = (const float*)(scratchRoom + INT64_C(67108864)) +
      ((int64_t)restOfBlock * 2 + tileM) * 128;
  const float* const inverseB = (const float*)(scratchRoom + INT64_C(134284288)) +
      ((int64_t)restOfBlock * 2 + tileN) * 128;
  float columnInverses[4];
  #pragma unroll
  for (int eachOne = 0; eachOne < 4; ++eachOne) {
    columnInverses[eachOne] = inverseB[laneIndex * 4 + eachOne];
  }
  const float* const firstSums = (const float*)(scratchRoom + INT64_C(134350848)) +
      (int64_t)tileOfAll * 16384 + rowIndex * 128;
  alignas(16) float rowSums[4] = {};
  #pragma unroll 4
  for (int partOfK = 0; partOfK < 32; ++partOfK) {
    alignas(16) float sumsOfPart[4];
    ke_copy<4>(sumsOfPart, firstSums + (int64_t)partOfK * 65536 + laneIndex * 4);
    #pragma unroll
    for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] += sumsOfPart[eachOne];
  }
  const float rowInverse = inverseA[rowIndex];
  #pragma unroll
  for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] * rowInverse *
      columnInverses[eachOne];
  const float sumOfFour = rowSums[0] + rowSums[1] + rowSums[2] + rowSums[3];
  if (sumOfFour != sumOfFour) {
    float plainSums[4] = {};
    #pragma unroll 1
    for (int kBegin = 0; kBegin < 65536; kBegin += 64) {
      float partSums[4] = {};
      const int kEnd = kBegin + 64 < 65536 ? kBegin + 64 : 65536;
      #pragma unroll 1
      for (int k = kBegin; k < kEnd; ++k) {
        const float x_8 = x[m * 65536 + k];
        const float leftFactor = x_8;
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) {
          const int columnAt = nBegin + laneIndex * 4 + eachOne;
          const int n = columnAt;
          const float w_9 = w[k * 256 + n];
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
  const int nFirst = nBegin + laneIndex * 4;
  alignas(16) float yWide10[4];
  #pragma unroll
  for (int n = nFirst; n < nFirst + 4; ++n) {
    const float cast_11 = rowSums[n - nFirst];
    yWide10[n - nFirst] = cast_11;
  }
  ke_copy<4>(y + m * 256 + nFirst, yWide10);
}

