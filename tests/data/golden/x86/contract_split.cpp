// matrix product of 2 times 50 x 1000 x 20: register tile 4 x 24, blocks 52 x 24, k in steps of 256; left operand packed block by block, right packed block by block; 2 threads; k summed in 2 parts
struct Kernel0ProductArguments {
  float* y;
  const float* x;
  const float* w;
  char* kernel0_product_scratch;
};


namespace kernel0_product {

constexpr int64_t kM = 50, kN = 20, kK = 1000;
constexpr int64_t kLanes = 8;
constexpr int64_t kTileM = 4, kTileVectors = 3;
constexpr int64_t kTileN = 24;
constexpr int64_t kBlockM = 52, kBlockN = 24, kBlockK = 256;
constexpr int64_t kBlocksM = 1, kBlocksN = 1, kBlocksK = 4;
constexpr int64_t kBlocks = 4;  // of all batches and parts of k
constexpr int64_t kSplits = 2;
constexpr int64_t kSplitK = 512;
constexpr int64_t kPlaces = 2;
constexpr int64_t kTilesABlock = 13;
// How the register tile walks its operands, in elements.
constexpr int64_t kRowLeft = 1, kStepLeft = 4, kStepRight = 24;
// Scratch: offsets in bytes, then one slot a thread, in elements.
constexpr int64_t kPartialSums = 64;
constexpr int64_t kSlots = 20032;
constexpr int64_t kSlot = 19472;
constexpr int64_t kSlotB = 13328;

// Rows [iM, iM + rowCount) over [iK, iK + kCount), in panels of kTileM rows.
static void pack_a(int64_t iB0, int64_t iM, int64_t rowCount, int64_t iK, int64_t kCount,
    void* argument, float* packedTo) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  const float* __restrict const x = arguments.x;
  for (int64_t rowP = 0; rowP < rowCount; rowP += kTileM, packedTo += kTileM * kCount) {
    const int64_t rowsHere = rowCount - rowP < kTileM ? rowCount - rowP : kTileM;
    int64_t stepK = 0;
    const float* const packedFrom = x + iB0 * 50000 + (iM + rowP) * 1 + iK * 50;
    if (rowsHere == kTileM) {
      for (; stepK < kCount; ++stepK) {
        __builtin_memcpy(packedTo + stepK * kTileM, packedFrom + stepK * 50,
            kTileM * sizeof(float));
      }
    }
    for (; stepK < kCount; ++stepK) {
      for (int64_t rowI = 0; rowI < rowsHere; ++rowI) {
        packedTo[stepK * kTileM + rowI] = packedFrom[rowI * 1 + stepK * 50];
      }
    }
  }
}

// Panels of the columns [iN, endN) over [iK, iK + kCount), a few rows at a time.
static void pack_b_rows(int64_t iB0, int64_t iN, int64_t endN, int64_t iK, int64_t kCount,
    void* argument, float* packedTo) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  const float* __restrict const w = arguments.w;
  const float* const packedFrom = w + iB0 * 20000 + iN + iK * 20;
  for (int64_t firstK = 0; firstK < kCount; firstK += 8) {
    const int64_t endK = kCount - firstK < 8 ? kCount : firstK + 8;
    for (int64_t colP = 0; colP < endN - iN; colP += kTileN) {
      const int64_t colsLeft = endN - iN - colP;
      const int64_t colCount = colsLeft < kTileN ? colsLeft : kTileN;
      for (int64_t stepK = firstK; stepK < endK; ++stepK) {
        float* const rowTo = packedTo + colP * kCount + stepK * kTileN;
        const float* const rowFrom = packedFrom + stepK * 20 + colP;
        if (colCount == kTileN) {
          __builtin_memcpy(rowTo, rowFrom, kTileN * sizeof(float));
        } else {
          for (int64_t colJ = 0; colJ < kTileN; ++colJ) {
            rowTo[colJ] = colJ < colCount ? rowFrom[colJ] : 0;
        }
        }
      }
    }
  }
}

// What follows the sum, for some columns of one row from (iM, iN) on.
static inline void finish_vector(int64_t iB0, int64_t iM, int64_t iN, f32x8 tileSum,
    void* argument) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  float* __restrict const y = arguments.y;
  store_f32x8(y + iB0 * 1000 + iM * 20 + iN, tileSum);
}

static void finish_tile(int64_t iB0, int64_t iM, int64_t rowCount, int64_t iN, int64_t colCount,
    const float* tile, void* argument) {
  for (int64_t row = 0; row < rowCount; ++row, tile += kTileN) {
    // The last vector may compute some columns once more.
    for (int64_t next = 0; next < colCount; next += kLanes) {
      const int64_t col = next + kLanes <= colCount ? next : colCount - kLanes;
      finish_vector(iB0, iM + row, iN + col, load_f32x8(tile + col), argument);
    }
  }
}

// Adds the products of kRows rows and kVectors vectors of columns over kCount steps of k.
template <int kRows, int kVectors>
static inline __attribute__((always_inline)) void multiply_tile(
    const float* left, const float* right, int64_t kCount, f32x8 (&sum)[kRows][kVectors]) {
  #pragma GCC unroll 4
  for (int64_t k = 0; k < kCount; ++k) {
    f32x8 columns[kVectors];
    #pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = load_f32x8(right + k * kStepRight + v * kLanes);
    }
    #pragma GCC unroll 32
    for (int i = 0; i < kRows; ++i) {
      const float row = left[i * kRowLeft + k * kStepLeft];
      #pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[i][v] += row * columns[v];
    }
  }
}

// The same, added to a tile in memory, or starting it.
template <int kRows, int kVectors>
static void add_tile(const float* left, const float* right, int64_t kCount, bool isFirst,
    float* tile) {
  f32x8 sum[kRows][kVectors] = {};
  multiply_tile<kRows, kVectors>(left, right, kCount, sum);
  if (!isFirst) {
    #pragma GCC unroll 32
    for (int i = 0; i < kRows; ++i) {
      #pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[i][v] += load_f32x8(tile + i * kTileN + v * kLanes);
    }
  }
  #pragma GCC unroll 32
  for (int i = 0; i < kRows; ++i) {
    #pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) store_f32x8(tile + i * kTileN + v * kLanes, sum[i][v]);
  }
}

static void multiply_block(int64_t blockId, float* slotBase, void* argument) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  char* __restrict const kernel0_product_scratch = arguments.kernel0_product_scratch;
  const int64_t splitId = blockId % kSplits;
  const int64_t placeId = blockId / kSplits;
  const int64_t firstM = placeId % kBlocksM * kBlockM;
  const int64_t firstN = placeId / kBlocksM % kBlocksN * kBlockN;
  const int64_t endM = kM - firstM < kBlockM ? kM : firstM + kBlockM;
  const int64_t endN = kN - firstN < kBlockN ? kN : firstN + kBlockN;
  const int64_t iB0 = placeId / 1 % 2;
  float* const packedA = slotBase;
  float* const packedB = slotBase + kSlotB;
  float* const blockSums = (float*)(kernel0_product_scratch + kPartialSums) +
                      (splitId * kPlaces + placeId) * kTilesABlock * kTileM * kTileN;
  const int64_t firstK = splitId * kSplitK;
  const int64_t endK = kK - firstK < kSplitK ? kK : firstK + kSplitK;
  for (int64_t iK = firstK; iK < endK; iK += kBlockK) {
    const int64_t kCount = kK - iK < kBlockK ? kK - iK : kBlockK;
    const bool isFirst = iK == firstK;
    float* tileAt = blockSums;
    pack_a(iB0, firstM, endM - firstM, iK, kCount, argument, packedA);
    pack_b_rows(iB0, firstN, endN, iK, kCount, argument, packedB);
    for (int64_t iN = firstN; iN < endN; iN += kTileN) {
      const int64_t colCount = endN - iN < kTileN ? endN - iN : kTileN;
      float* const rightAt = packedB + (iN - firstN) * kCount;
      for (int64_t iM = firstM; iM < endM; iM += kTileM) {
        const float* const leftAt = packedA + (iM - firstM) * kCount;
        const int64_t rowCount = endM - iM < kTileM ? endM - iM : kTileM;
        if (rowCount == kTileM) {
          add_tile<kTileM, kTileVectors>(leftAt, rightAt, kCount, isFirst, tileAt);
        } else {
        add_tile<2, kTileVectors>(leftAt, rightAt, kCount, isFirst, tileAt);
        }
        tileAt += kTileM * kTileN;
      }
    }
  }
}

// One thread: takes blocks until none is left.
static void work(int64_t threadId, void* argument) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  char* __restrict const kernel0_product_scratch = arguments.kernel0_product_scratch;
  int64_t* const nextBlock = (int64_t*)kernel0_product_scratch;
  float* const slotBase = (float*)(kernel0_product_scratch + kSlots) + threadId * kSlot;
  int64_t blockId;
  while ((blockId = __atomic_fetch_add(nextBlock, 1, __ATOMIC_RELAXED)) < kBlocks) {
    multiply_block(blockId, slotBase, argument);
  }
}

// Adds the parts of one block's tiles and finishes them.
static void combine(int64_t placeId, void* argument) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  char* __restrict const kernel0_product_scratch = arguments.kernel0_product_scratch;
  constexpr int64_t kBlockSums = kTilesABlock * kTileM * kTileN;
  const float* partAt = (const float*)(kernel0_product_scratch + kPartialSums) +
                   placeId * kBlockSums;
  const int64_t firstM = placeId % kBlocksM * kBlockM;
  const int64_t firstN = placeId / kBlocksM % kBlocksN * kBlockN;
  const int64_t endM = kM - firstM < kBlockM ? kM : firstM + kBlockM;
  const int64_t endN = kN - firstN < kBlockN ? kN : firstN + kBlockN;
  const int64_t iB0 = placeId / 1 % 2;
  for (int64_t iN = firstN; iN < endN; iN += kTileN) {
    for (int64_t iM = firstM; iM < endM; iM += kTileM, partAt += kTileM * kTileN) {
      alignas(64) float tileAt[kTileM * kTileN];
      for (int64_t i = 0; i < kTileM * kTileN; ++i) {
        float sumOfParts = partAt[i];
        for (int64_t s = 1; s < kSplits; ++s) sumOfParts += partAt[s * kPlaces * kBlockSums + i];
        tileAt[i] = sumOfParts;
      }
      finish_tile(iB0, iM, endM - iM < kTileM ? endM - iM : kTileM, iN,
                  endN - iN < kTileN ? endN - iN : kTileN, tileAt, argument);
    }
  }
}

}  // namespace kernel0_product

// ke_launch:
{
  Kernel0ProductArguments kernel0_product_arguments = {y, x, w, kernel0_product_scratch};
  *(int64_t*)kernel0_product_scratch = 0;  // the next block to take
  context->parallel_for(context->pool, 2, kernel0_product::work, &kernel0_product_arguments);
  context->parallel_for(context->pool, kernel0_product::kPlaces, kernel0_product::combine,
      &kernel0_product_arguments);
}
