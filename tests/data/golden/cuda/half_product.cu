// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_mm.
// Inputs: x bfloat16[512, 256], w bfloat16[256, 384].
// Outputs: y bfloat16[512, 384].
//
// ke:scratch 196608
// ke:launch kernel0_mm_pack grid=(12, 1) block=(256) shared=33280 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_mm_product grid=(12, 1) block=(384) shared=132176 args=(out0, in0, in1, scratch+0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_mm: aten.mm.default; aten.mm.
// Schedule: m 512, n 384, k 256 on tensor cores; bfloat16 operands as they are; A gathered from
// where it lies; tiles of 128 x 128, 4 slices of 64 in shared memory.
extern "C" __global__ void __launch_bounds__(256) kernel0_mm_pack(uint16_t* __restrict__ y, const
    uint16_t* __restrict__ x, const uint16_t* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  const int blockRest = (int)blockIdx.x;
  const int kSlice = blockRest % 4;
  const int rowBlock = blockRest / 4 % 3;
  const int restOfBlock = blockRest / 12;
  const int tileRows = restOfBlock * 3 + rowBlock;
  float* const rowScales = (float*)ke_shared();
  char* const toTile = scratchRoom + INT64_C(0) + ((int64_t)tileRows * 4 + kSlice) * 16384;
  float* const turnedRows = rowScales + 128;
  #pragma unroll 8
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int placeIndex = turnIndex * 256 + threadIndex;
    const int rowIndex = placeIndex % 32 * 4, depthIndex = placeIndex / 32;
    const int nFirst = rowBlock * 128 + rowIndex;
    const int k = kSlice * 64 + depthIndex;
    alignas(16) float eachValue[4] = {};
    if (nFirst < 384 && k < 256) {
      alignas(16) uint16_t wWide0[4];
      ke_copy<4>(wWide0, w + k * 384 + nFirst);
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float cast_1 = ke_load_bf16(&wWide0[n - nFirst]);
        eachValue[n - nFirst] = cast_1;
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
    ke_pack_bf16(toTile + ke_tile_place(rowIndex, pieceIndex), eightOfK);
  }
}


extern "C" __global__ void __launch_bounds__(384, 1) kernel0_mm_product(uint16_t* __restrict__ y,
    const uint16_t* __restrict__ x, const uint16_t* __restrict__ w, char* __restrict__ scratchRoom)
    {
  const int threadIndex = (int)threadIdx.x;
  const int tileIndex = (int)blockIdx.x % 12;
  const int firstOfGroup = tileIndex / 12 * 4;
  const int sizeOfGroup = 4;
  const int indexInGroup = tileIndex % 12;
  const int tileM = firstOfGroup + indexInGroup % sizeOfGroup, tileN = indexInGroup / sizeOfGroup;
  const int restOfBlock = (int)blockIdx.x / 12;
  const int mBegin = tileM * 128, nBegin = tileN * 128;
  char* const allStages = ke_shared_tiles();
  uint64_t* const stageFull = (uint64_t*)(allStages + 131072);
  uint64_t* const stageEmpty = stageFull + 4, *const allDone = stageFull + 8;
  if (threadIndex == 0) {
    for (int stageAt = 0; stageAt < 4; ++stageAt) {
      ke_barrier_make(stageFull + stageAt, 5);
      ke_barrier_make(stageEmpty + stageAt, 8);
    }
    ke_barrier_make(allDone, 8);
    ke_barriers_made();
  }
  __syncthreads();
  if (threadIndex < 128) {
    ke_fewer_registers<72>();
    const int pieceIndex = threadIndex % 8;
    const char* const fromB = scratchRoom + INT64_C(0) + ((int64_t)restOfBlock * 3 + tileN) * 65536;
    int stageIndex = 0, stageParity = 1, stageReady = 0;
    for (int kSlice = 0; kSlice < 4; ++kSlice) {
      char* const toStage = allStages + stageIndex * 32768;
      if (threadIndex == 0) {
        ke_barrier_expect(stageFull + stageIndex, 16384);
        ke_bulk_copy(toStage + 16384, fromB + (int64_t)kSlice * 16384, 16384, stageFull +
            stageIndex);
      }
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
        const int rowIndex = turnIndex * 16 + threadIndex / 8;
        const int m = mBegin + rowIndex, pieceOfK = kSlice * 8 + pieceIndex;
        const bool pieceExists = true;
        const int add_2 = (m * 32) + pieceOfK;
        const char* const fromPiece = (const char*)x + (int64_t)(pieceExists ? add_2 : 0) * 16;
        char* const toPiece = toStage + ke_tile_place(rowIndex, pieceIndex);
        ke_copy_16_if(pieceExists, toPiece, fromPiece);
      }
      ke_copies_commit();
      if (kSlice >= 2) {
        ke_copies_wait<2>();
        ke_written_for_products();
        __syncwarp();
        if (threadIndex % 32 == 0) ke_barrier_arrive(stageFull + stageReady);
        if (++stageReady == 4) stageReady = 0;
      }
      if (++stageIndex == 4) stageIndex = 0, stageParity ^= 1;
    }
    ke_copies_wait<0>();
    for (int leftOver = 0; leftOver < 2; ++leftOver) {
      ke_written_for_products();
      __syncwarp();
      if (threadIndex % 32 == 0) ke_barrier_arrive(stageFull + stageReady);
      if (++stageReady == 4) stageReady = 0;
    }
  } else {
    ke_more_registers<216>();
    const int groupIndex = threadIndex / 128 - 1, warpIndex = threadIndex / 32 - 4;
    const int laneIndex = threadIndex % 32;
    float mainSums[64] = {}, tileSums[64] = {};
    int stageIndex = 0, stageParity = 0;
    int stageBefore = 0;
    for (int kSlice = 0; kSlice < 4; ++kSlice) {
      ke_barrier_wait(stageFull + stageIndex, stageParity);
      const char* const fromStage = allStages + stageIndex * 32768;
      const uint64_t tileA = ke_tile(fromStage + groupIndex * 8192);
      const uint64_t tileB = ke_tile(fromStage + 16384);
      ke_products_begin();
      #pragma unroll
      for (int stepOfK = 0; stepOfK < 4; ++stepOfK) ke_product_bf16(mainSums, tileA + 2 * stepOfK,
          tileB + 2 * stepOfK, stepOfK > 0 || kSlice % 4 != 0);
      ke_products_commit();
      ke_products_wait<1>();
      if (kSlice > 0 && laneIndex == 0) ke_barrier_arrive(stageEmpty + stageBefore);
      if (kSlice % 4 == 3) {
        ke_products_wait<0>();
        #pragma unroll
        for (int eachOne = 0; eachOne < 64; ++eachOne) tileSums[eachOne] += mainSums[eachOne];
      }
      stageBefore = stageIndex;
      if (++stageIndex == 4) stageIndex = 0, stageParity ^= 1;
    }
    ke_products_wait<0>();
    if (laneIndex == 0) ke_barrier_arrive(allDone);
    ke_barrier_wait(allDone, 0);
    float* const warpSums = (float*)allStages + warpIndex * 2176;
    #pragma unroll
    for (int pairIndex = 0; pairIndex < 32; ++pairIndex) {
      alignas(8) float pairOfSums[2];
      #pragma unroll
      for (int eachOne = 0; eachOne < 2; ++eachOne) pairOfSums[eachOne] = tileSums[pairIndex * 2 +
          eachOne];
      ke_copy<2>(warpSums + (laneIndex / 4 + pairIndex % 2 * 8) * 136 + pairIndex / 2 * 8 +
          laneIndex % 4 * 2, pairOfSums);
    }
    __syncwarp();
    #pragma unroll 2
    for (int rowIndex = 0; rowIndex < 16; ++rowIndex) {
      const int m = mBegin + warpIndex * 16 + rowIndex;
      alignas(16) float rowSums[4];
      ke_copy<4>(rowSums, warpSums + rowIndex * 136 + laneIndex * 4);
      const int nFirst = nBegin + laneIndex * 4;
      alignas(16) uint16_t yWide3[4];
      #pragma unroll
      for (int n = nFirst; n < nFirst + 4; ++n) {
        const float cast_4 = rowSums[n - nFirst];
        const float cast_5 = ke_round_bf16((float)cast_4);
        const float cast_6 = ke_round_bf16((float)cast_5);
        yWide3[n - nFirst] = ke_bits_bf16((float)cast_6);
      }
      ke_copy<4>(y + m * 384 + nFirst, yWide3);
    }
  }
}

