// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_convolution.
// Inputs: x float32[16, 64, 56, 56], w float32[128, 64, 3, 3].
// Outputs: y float32[16, 128, 56, 56].
//
// ke:scratch 6579200
// ke:launch kernel0_convolution_extents grid=(409, 1) block=(256) shared=32 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_convolution_pack grid=(409, 1) block=(256) shared=33280 args=(out0, in0, in1, scratch+0)
// ke:launch kernel0_convolution_product grid=(392, 1) block=(384) shared=197744 args=(out0, in0, in1, scratch+0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_convolution: aten.convolution.default.
// Schedule: m 128, n 50176, k 576 on tensor cores; fp32 operands rounded to fp16 parts, one
// product; B gathered from a packed copy; tiles of 128 x 128, 6 slices of 64 in shared memory.
extern "C" __global__ void __launch_bounds__(256) kernel0_convolution_extents(float* __restrict__ y,
    const float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 9u) {
    const int blockRest = (int)blockIdx.x;
    const int partOfK = blockRest % 9;
    const int rowBlock = blockRest / 9 % 1;
    const int restOfBlock = blockRest / 9;
    const int tileRows = restOfBlock * 1 + rowBlock;
    const int kBegin = partOfK * 64;
    const int kEnd = kBegin + 64 < 576 ? kBegin + 64 : 576;
    uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C(148480)) + ((int64_t)tileRows * 9
        + partOfK) * 128;
    for (int rowIndex = threadIndex / 32; rowIndex < 128; rowIndex += 8) {
      const int m = rowBlock * 128 + rowIndex;
      uint32_t rowMost = 0;
      if (m < 128) {
        #pragma unroll 4
        for (int k = kBegin + threadIndex % 32 * 1; k < kEnd; k += 32) {
          uint32_t eachMagnitude[1];
          const float w_0 = w[m * 576 + (k % 64) * 9 + (k / 64)];
          eachMagnitude[0] = ke_magnitude(w_0);
          #pragma unroll
          for (int eachOne = 0; eachOne < 1; ++eachOne) rowMost = ke_greater(rowMost,
              eachMagnitude[eachOne]);
        }
      }
      rowMost = ke_join<32>(rowMost, ke_shared(), [](uint32_t a, uint32_t b) { return ke_greater(a,
          b); });
      if (threadIndex % 32 == 0) toExtents[rowIndex] = rowMost;
    }
    return;
  }
  const int blockRest = (int)(blockIdx.x - 9u);
  const int imageAt = blockRest / 25, partOfImage = blockRest % 25;
  const int elementBegin = partOfImage * 8192;
  const int elementEnd = elementBegin + 8192 < 200704 ? elementBegin + 8192 : 200704;
  uint32_t partMost = 0;
  #pragma unroll 8
  for (int elementAtFirst = elementBegin + threadIndex * 4; elementAtFirst < elementEnd;
      elementAtFirst += 1024) {
    uint32_t eachMagnitude[4];
    alignas(16) float xWide1[4];
    ke_copy<4>(xWide1, x + imageAt * 200704 + elementAtFirst);
    #pragma unroll
    for (int elementAt = elementAtFirst; elementAt < elementAtFirst + 4; ++elementAt) {
      const float x_2 = xWide1[elementAt - elementAtFirst];
      eachMagnitude[elementAt - elementAtFirst] = ke_magnitude(x_2);
    }
    #pragma unroll
    for (int eachOne = 0; eachOne < 4; ++eachOne) partMost = ke_greater(partMost,
        eachMagnitude[eachOne]);
  }
  partMost = ke_join<256>(partMost, ke_shared(), [](uint32_t a, uint32_t b) { return ke_greater(a,
      b); });
  if (threadIndex == 0) ((uint32_t*)(scratchRoom + INT64_C(6577152)))[blockRest] = partMost;
}

extern "C" __global__ void __launch_bounds__(256) kernel0_convolution_pack(float* __restrict__ y,
    const float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  if (blockIdx.x < 9u) {
    const int blockRest = (int)blockIdx.x;
    const int kSlice = blockRest % 9;
    const int rowBlock = blockRest / 9 % 1;
    const int restOfBlock = blockRest / 9;
    const int tileRows = restOfBlock * 1 + rowBlock;
    float* const rowScales = (float*)ke_shared();
    if (threadIndex < 128) {
      const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C(148480)) +
          (int64_t)tileRows * 1152 + threadIndex;
      uint32_t rowMost = fromExtents[0];
      #pragma unroll
      for (int partIndex = 1; partIndex < 9; ++partIndex) rowMost = ke_greater(rowMost,
          fromExtents[partIndex * 128]);
      float rowInverse;
      ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);
      if (kSlice == 0) ((float*)(scratchRoom + INT64_C(147456)))[(int64_t)tileRows * 128 +
          threadIndex] = rowInverse;
    }
    __syncthreads();
    char* const toTile = scratchRoom + INT64_C(0) + ((int64_t)tileRows * 9 + kSlice) * 16384;
    #pragma unroll
    for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
      const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;
      alignas(16) float eightOfK[8] = {};
      const int m = rowBlock * 128 + rowIndex;
      #pragma unroll
      for (int groupIndex = 0; groupIndex < 8; ++groupIndex) {
        const int k = kSlice * 64 + pieceIndex * 8 + groupIndex * 1;
        if (m < 128 && k < 576) {
          const float w_3 = w[m * 576 + (k % 64) * 9 + (k / 64)];
          eightOfK[groupIndex * 1 + 0] = w_3;
        }
      }
      ke_pack_f16<1>(toTile + ke_tile_place(rowIndex, pieceIndex), eightOfK, rowScales[rowIndex]);
    }
    return;
  }
  const int blockRest = (int)(blockIdx.x - 9u);
  const int channelBegin = blockRest % 1 * 64;
  const int pixelBegin = blockRest % 25 * 128;
  const int imageAt = blockRest / 25;
  ke_spread imageSpread = ke_spread_of(0);
  for (int partIndex = threadIndex; partIndex < 25; partIndex += 256) {
    imageSpread = ke_joined(imageSpread, ke_spread_of(((const uint32_t*)(scratchRoom +
        INT64_C(6577152)))[imageAt * 25 + partIndex]));
  }
  imageSpread = ke_join<256>(imageSpread, ke_shared(), [](ke_spread a, ke_spread b) { return
      ke_joined(a, b); });
  float imageScale, imageInverse;
  ke_scale_image(imageSpread, imageScale, imageInverse);
  if (channelBegin == 0 && pixelBegin == 0 && threadIndex == 0) ((float*)(scratchRoom +
      INT64_C(6576128)))[imageAt] = imageInverse;
  uint16_t* const toImage = (uint16_t*)(scratchRoom + INT64_C(153600)) + (int64_t)imageAt * 200704;
  float* const turnedPixels = (float*)ke_shared() + 128;
  #pragma unroll 8
  for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
    const int placeIndex = turnIndex * 256 + threadIndex;
    const int pixelIndex = placeIndex % 32 * 4, channelIndex = placeIndex / 32;
    const int pixelAtFirst = pixelBegin + pixelIndex;
    const int channelAt = channelBegin + channelIndex;
    alignas(16) float eachValue[4] = {};
    if (pixelAtFirst < 3136 && channelAt < 64) {
      alignas(16) float xWide4[4];
      ke_copy<4>(xWide4, x + imageAt * 200704 + channelAt * 3136 + pixelAtFirst);
      #pragma unroll
      for (int pixelAt = pixelAtFirst; pixelAt < pixelAtFirst + 4; ++pixelAt) {
        const float x_5 = xWide4[pixelAt - pixelAtFirst];
        eachValue[pixelAt - pixelAtFirst] = x_5;
      }
    }
    ke_copy<4>(turnedPixels + channelIndex * 128 + (pixelIndex ^ channelIndex / 8 * 4), eachValue);
  }
  __syncthreads();
  #pragma unroll
  for (int turnIndex = 0; turnIndex < 4; ++turnIndex) {
    const int placeIndex = turnIndex * 256 + threadIndex;
    const int pixelIndex = placeIndex / 8, pieceIndex = placeIndex % 8;
    const int pixelAt = pixelBegin + pixelIndex;
    const int pieceBegin = channelBegin + pieceIndex * 8;
    if (pixelAt >= 3136 || pieceBegin >= 64) continue;
    alignas(16) float eightOfK[8];
    #pragma unroll
    for (int eachOne = 0; eachOne < 8; ++eachOne) eightOfK[eachOne] = turnedPixels[(pieceIndex * 8 +
        eachOne) * 128 + (pixelIndex ^ pieceIndex * 4)];
    ke_pack_f16<1>((char*)(toImage + (int64_t)pixelAt * 64 + pieceBegin), eightOfK, imageScale);
  }
}


extern "C" __global__ void __launch_bounds__(384, 1) kernel0_convolution_product(float* __restrict__
    y, const float* __restrict__ x, const float* __restrict__ w, char* __restrict__ scratchRoom) {
  const int threadIndex = (int)threadIdx.x;
  const int tileIndex = (int)blockIdx.x % 392;
  const int tileM = tileIndex / 392, tileN = tileIndex % 392;
  const int restOfBlock = (int)blockIdx.x / 392;
  const int mBegin = tileM * 128, nBegin = tileN * 128;
  char* const allStages = ke_shared_tiles();
  uint64_t* const stageFull = (uint64_t*)(allStages + 196608);
  uint64_t* const stageEmpty = stageFull + 6, *const allDone = stageFull + 12;
  if (threadIndex == 0) {
    for (int stageAt = 0; stageAt < 6; ++stageAt) {
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
    const char* const fromA = scratchRoom + INT64_C(0) + ((int64_t)restOfBlock * 1 + tileM) *
        147456;
    int stageIndex = 0, stageParity = 1, stageReady = 0;
    for (int kSlice = 0; kSlice < 9; ++kSlice) {
      if (kSlice >= 6) ke_barrier_wait(stageEmpty + stageIndex, stageParity);
      char* const toStage = allStages + stageIndex * 32768;
      if (threadIndex == 0) {
        ke_barrier_expect(stageFull + stageIndex, 16384);
        ke_bulk_copy(toStage, fromA + (int64_t)kSlice * 16384, 16384, stageFull + stageIndex);
      }
      #pragma unroll
      for (int turnIndex = 0; turnIndex < 8; ++turnIndex) {
        const int rowIndex = turnIndex * 16 + threadIndex / 8;
        const int n = nBegin + rowIndex, pieceOfK = kSlice * 8 + pieceIndex;
        const int mod_6 = (n / 56) % 56;
        const int floor_div_7 = pieceOfK / 24;
        const bool logical_and_8 = (((mod_6 + floor_div_7) + -1) >= 0) && (((mod_6 + floor_div_7) +
            -1) < 56);
        const int mod_9 = n % 56;
        const int mod_10 = (pieceOfK / 8) % 3;
        const bool logical_and_11 = (((mod_9 + mod_10) + -1) >= 0) && (((mod_9 + mod_10) + -1) <
            56);
        const bool logical_and_12 = logical_and_8 && logical_and_11;
        const bool pieceExists = logical_and_12;
        const int add_13 = (((pieceOfK / 24) * 448) + (((pieceOfK / 8) % 3) * 8)) + (n * 8);
        const int add_14 = (add_13 + (pieceOfK % 8)) + -456;
        const char* const fromPiece = scratchRoom + INT64_C(153600) + (int64_t)(pieceExists ? add_14
            : 0) * 16;
        char* const toPiece = toStage + 16384 + ke_tile_place(rowIndex, pieceIndex);
        ke_copy_16_if(pieceExists, toPiece, fromPiece);
      }
      ke_copies_commit();
      if (kSlice >= 3) {
        ke_copies_wait<3>();
        ke_written_for_products();
        __syncwarp();
        if (threadIndex % 32 == 0) ke_barrier_arrive(stageFull + stageReady);
        if (++stageReady == 6) stageReady = 0;
      }
      if (++stageIndex == 6) stageIndex = 0, stageParity ^= 1;
    }
    ke_copies_wait<0>();
    for (int leftOver = 0; leftOver < 3; ++leftOver) {
      ke_written_for_products();
      __syncwarp();
      if (threadIndex % 32 == 0) ke_barrier_arrive(stageFull + stageReady);
      if (++stageReady == 6) stageReady = 0;
    }
  } else {
    ke_more_registers<216>();
    const int groupIndex = threadIndex / 128 - 1, warpIndex = threadIndex / 32 - 4;
    const int laneIndex = threadIndex % 32;
    float mainSums[64] = {}, tileSums[64] = {};
    int stageIndex = 0, stageParity = 0;
    int stageBefore = 0;
    for (int kSlice = 0; kSlice < 9; ++kSlice) {
      ke_barrier_wait(stageFull + stageIndex, stageParity);
      const char* const fromStage = allStages + stageIndex * 32768;
      const uint64_t tileA = ke_tile(fromStage + groupIndex * 8192);
      const uint64_t tileB = ke_tile(fromStage + 16384);
      ke_products_begin();
      #pragma unroll
      for (int stepOfK = 0; stepOfK < 4; ++stepOfK) ke_product_f16(mainSums, tileA + 2 * stepOfK,
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
      if (++stageIndex == 6) stageIndex = 0, stageParity ^= 1;
    }
    ke_products_wait<0>();
    #pragma unroll
    for (int eachOne = 0; eachOne < 64; ++eachOne) tileSums[eachOne] += mainSums[eachOne];
    if (laneIndex == 0) ke_barrier_arrive(allDone);
    ke_barrier_wait(allDone, 0);
    float* const warpSums = (float*)allStages + warpIndex * 2176;
    int lacksParts = 0;
    #pragma unroll
    for (int pairIndex = 0; pairIndex < 32; ++pairIndex) {
      alignas(8) float pairOfSums[2];
      #pragma unroll
      for (int eachOne = 0; eachOne < 2; ++eachOne) pairOfSums[eachOne] = tileSums[pairIndex * 2 +
          eachOne];
      lacksParts |= pairOfSums[0] != pairOfSums[0] || pairOfSums[1] != pairOfSums[1] ? 1 : 0;
      ke_copy<2>(warpSums + (laneIndex / 4 + pairIndex % 2 * 8) * 136 + pairIndex / 2 * 8 +
          laneIndex % 4 * 2, pairOfSums);
    }
    lacksParts = ke_join<32>(lacksParts, ke_shared(), [](int a, int b) { return a | b; });
    __syncwarp();
    const float* const inverseA = (const float*)(scratchRoom + INT64_C(147456)) +
        ((int64_t)restOfBlock * 1 + tileM) * 128;
    const float* const inverseB = (const float*)(scratchRoom + INT64_C(6576128));
    float columnInverses[4];
    #pragma unroll
    for (int eachOne = 0; eachOne < 4; ++eachOne) {
      const int rowAt15 = nBegin + eachOne * 32 + laneIndex;
      const int floor_div_16 = rowAt15 / 3136;
      columnInverses[eachOne] = inverseB[floor_div_16];
    }
    if (lacksParts != 0) {
      #pragma unroll 1
      for (int rowIndex = 0; rowIndex < 16; ++rowIndex) {
        const int m = mBegin + warpIndex * 16 + rowIndex;
        alignas(16) float rowSums[4];
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = (warpSums + rowIndex *
            136)[eachOne * 32 + laneIndex];
        const float rowInverse = inverseA[warpIndex * 16 + rowIndex];
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] *
            rowInverse * columnInverses[eachOne];
        const float sumOfFour = rowSums[0] + rowSums[1] + rowSums[2] + rowSums[3];
        if (sumOfFour != sumOfFour) {
          float plainSums[4] = {};
          #pragma unroll 1
          for (int kBegin = 0; kBegin < 576; kBegin += 64) {
            float partSums[4] = {};
            const int kEnd = kBegin + 64 < 576 ? kBegin + 64 : 576;
            #pragma unroll 1
            for (int k = kBegin; k < kEnd; ++k) {
              const float w_17 = w[m * 576 + (k % 64) * 9 + (k / 64)];
              const float leftFactor = w_17;
              #pragma unroll
              for (int eachOne = 0; eachOne < 4; ++eachOne) {
                const int columnAt = nBegin + eachOne * 32 + laneIndex;
                const int n = columnAt;
                const int mod_18 = (n / 56) % 56;
                const int floor_div_19 = k / 192;
                const bool logical_and_20 = (((mod_18 + floor_div_19) + -1) >= 0) && (((mod_18 +
                    floor_div_19) + -1) < 56);
                const int mod_21 = n % 56;
                const int mod_22 = (k / 64) % 3;
                const bool logical_and_23 = (((mod_21 + mod_22) + -1) >= 0) && (((mod_21 + mod_22) +
                    -1) < 56);
                const bool inside_24 = logical_and_20 && logical_and_23;
                float chosen_25;
                if (inside_24) {
                  const float x_26 = x[(n / 3136) * 200704 + (k % 64) * 3136 + ((n / 56) % 56) * 56
                      + (k / 192) * 56 + (n % 56) + ((k / 64) % 3) - 57];
                  chosen_25 = x_26;
                }
                else {
                  chosen_25 = 0.0f;
                }
                partSums[eachOne] += leftFactor * chosen_25;
              }
            }
            #pragma unroll
            for (int eachOne = 0; eachOne < 4; ++eachOne) plainSums[eachOne] += partSums[eachOne];
          }
          #pragma unroll
          for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] !=
              rowSums[eachOne] ? plainSums[eachOne] : rowSums[eachOne];
        }
        #pragma unroll
        for (int eachOne = 0; eachOne < 4; ++eachOne) (warpSums + rowIndex * 136)[eachOne * 32 +
            laneIndex] = rowSums[eachOne];
      }
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) columnInverses[eachOne] = 1.0f;
    }
    #pragma unroll 2
    for (int rowIndex = 0; rowIndex < 16; ++rowIndex) {
      const int m = mBegin + warpIndex * 16 + rowIndex;
      alignas(16) float rowSums[4];
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = (warpSums + rowIndex *
          136)[eachOne * 32 + laneIndex];
      const float rowInverse = lacksParts != 0 ? 1.0f : inverseA[warpIndex * 16 + rowIndex];
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] * rowInverse
          * columnInverses[eachOne];
      #pragma unroll
      for (int eachOne = 0; eachOne < 4; ++eachOne) {
        const int n = nBegin + eachOne * 32 + laneIndex;
        if (n < 50176) {
          const float cast_27 = rowSums[eachOne];
          y[(n / 3136) * 401408 + m * 3136 + ((n / 56) % 56) * 56 + (n % 56)] = cast_27;
        }
      }
    }
  }
}

