// matrix product of 128 x 1024 x 512: register tile 5 x 16, blocks 130 x 256, k in steps of 256; left operand packed block by block, right packed block by block; 2 threads
struct Kernel0ProductArguments {
  float* y;
  const float* x;
  const float* w;
  const float* bias;
  char* kernel0_product_scratch;
};


namespace kernel0_product {

constexpr int64_t kM = 128, kN = 512, kK = 1024;
constexpr int64_t kLanes = 8;
constexpr int64_t kTileM = 5, kTileVectors = 2;
constexpr int64_t kTileN = 16;
constexpr int64_t kBlockM = 130, kBlockN = 256, kBlockK = 256;
constexpr int64_t kBlocksM = 1, kBlocksN = 2, kBlocksK = 4;
constexpr int64_t kBlocks = 2;  // of all batches and parts of k
// How the register tile walks its operands, in elements.
constexpr int64_t kRowLeft = 1, kStepLeft = 5, kStepRight = 16;
// Scratch: offsets in bytes, then one slot a thread, in elements.
constexpr int64_t kSlots = 64;
constexpr int64_t kSlot = 132112;
constexpr int64_t kSlotB = 33296;
constexpr int64_t kSlotSums = 98832;

// to[k * kTo + i] = from[i * kFrom + k] for i, k < 8; rows from kRows on are zero.
template <int kRows, int64_t kFrom, int64_t kTo>
static inline void transpose(const float* from, float* to) {
  f32x8 row[8] = {}, pair[8];
  for (int i = 0; i < kRows; ++i) row[i] = load_f32x8(from + i * kFrom);
  for (int i = 0; i < 8; i += 2) {
    pair[i] = __builtin_shuffle(row[i], row[i + 1], (i32x8){0, 8, 1, 9, 4, 12, 5, 13});
    pair[i + 1] = __builtin_shuffle(row[i], row[i + 1], (i32x8){2, 10, 3, 11, 6, 14, 7, 15});
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      row[i + 2 * j] =
          __builtin_shuffle(pair[i + j], pair[i + j + 2], (i32x8){0, 1, 8, 9, 4, 5, 12, 13});
      row[i + 2 * j + 1] =
          __builtin_shuffle(pair[i + j], pair[i + j + 2], (i32x8){2, 3, 10, 11, 6, 7, 14, 15});
    }
  }
  for (int k = 0; k < 4; ++k) {
    const f32x8 low = __builtin_shuffle(row[k], row[k + 4], (i32x8){0, 1, 2, 3, 8, 9, 10, 11});
    store_f32x8(to + k * kTo, low);
  }
  for (int k = 4; k < 8; ++k) {
    const f32x8 high =
        __builtin_shuffle(row[k - 4], row[k], (i32x8){4, 5, 6, 7, 12, 13, 14, 15});
    store_f32x8(to + k * kTo, high);
  }
}

// Rows [iM, iM + rowCount) over [iK, iK + kCount), in panels of kTileM rows.
static void pack_a(int64_t iM, int64_t rowCount, int64_t iK, int64_t kCount, void* argument,
    float* packedTo) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  const float* __restrict const x = arguments.x;
  for (int64_t rowP = 0; rowP < rowCount; rowP += kTileM, packedTo += kTileM * kCount) {
    const int64_t rowsHere = rowCount - rowP < kTileM ? rowCount - rowP : kTileM;
    int64_t stepK = 0;
    const float* const packedFrom = x + (iM + rowP) * 1024 + iK * 1;
    if (rowsHere == kTileM) {
      for (; stepK + 8 <= kCount; stepK += 8) {
        transpose<5, 1024, kTileM>(packedFrom + 0 + stepK, packedTo + stepK * kTileM + 0);
        // The same rows of the next block of k are far away in memory.
        for (int64_t rowI = 0; rowI < kTileM; ++rowI) {
          __builtin_prefetch(packedFrom + rowI * 1024 + stepK + kBlockK, 0, 2);
        }
      }
    }
    for (; stepK < kCount; ++stepK) {
      for (int64_t rowI = 0; rowI < rowsHere; ++rowI) {
        packedTo[stepK * kTileM + rowI] = packedFrom[rowI * 1024 + stepK * 1];
      }
    }
  }
}

// One panel: columns [iN, iN + colCount) over [iK, iK + kCount), padded to kTileN.
static void pack_b_panel(int64_t iN, int64_t colCount, int64_t iK, int64_t kCount,
    void* argument, float* packedTo) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  const float* __restrict const w = arguments.w;
  int64_t stepK = 0;
  const float* const packedFrom = w + iN * 1024 + iK * 1;
  if (colCount == kTileN) {
    for (; stepK + 8 <= kCount; stepK += 8) {
      for (int64_t colJ = 0; colJ < kTileN; colJ += 8) {
        transpose<8, 1024, kTileN>(packedFrom + colJ * 1024 + stepK, packedTo + stepK * kTileN +
            colJ);
      }
    }
  }
}

// What follows the sum, for some columns of one row from (iM, iN) on.
static inline void finish_vector(int64_t iM, int64_t iN, f32x8 tileSum, void* argument) {
  const Kernel0ProductArguments& arguments = *(const Kernel0ProductArguments*)argument;
  float* __restrict const y = arguments.y;
  const float* __restrict const bias = arguments.bias;
  const f32x8 bias_0 = load_f32x8(bias + iN);
  const f32x8 mul_1 = (tileSum + bias_0) * 2.0f;
  const f32x8 chosen_2 = (mul_1 > 0.0f) ? mul_1 : (mul_1 * 0.1f);
  store_f32x8(y + iM * 512 + iN, chosen_2);
}

static void finish_tile(int64_t iM, int64_t rowCount, int64_t iN, int64_t colCount,
    const float* tile, void* argument) {
  for (int64_t row = 0; row < rowCount; ++row, tile += kTileN) {
    for (int64_t next = 0; next < colCount; next += kLanes) {
      const int64_t col = next;
      finish_vector(iM + row, iN + col, load_f32x8(tile + col), argument);
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
  const int64_t placeId = blockId;
  const int64_t firstM = placeId % kBlocksM * kBlockM;
  const int64_t firstN = placeId / kBlocksM % kBlocksN * kBlockN;
  const int64_t endM = kM - firstM < kBlockM ? kM : firstM + kBlockM;
  const int64_t endN = kN - firstN < kBlockN ? kN : firstN + kBlockN;
  float* const packedA = slotBase;
  float* const packedB = slotBase + kSlotB;
  float* const blockSums = slotBase + kSlotSums;
  for (int64_t iK = 0; iK < kK; iK += kBlockK) {
    const int64_t kCount = kK - iK < kBlockK ? kK - iK : kBlockK;
    const bool isFirst = iK == 0;
    const bool isLast = iK + kCount == kK;
    float* tileAt = blockSums;
    pack_a(firstM, endM - firstM, iK, kCount, argument, packedA);
    for (int64_t iN = firstN; iN < endN; iN += kTileN) {
      const int64_t colCount = endN - iN < kTileN ? endN - iN : kTileN;
      float* const rightAt = packedB + (iN - firstN) * kCount;
      pack_b_panel(iN, colCount, iK, kCount, argument, rightAt);
      for (int64_t iM = firstM; iM < endM; iM += kTileM) {
        const float* const leftAt = packedA + (iM - firstM) * kCount;
        const int64_t rowCount = endM - iM < kTileM ? endM - iM : kTileM;
        if (rowCount == kTileM) {
          add_tile<kTileM, kTileVectors>(leftAt, rightAt, kCount, isFirst, tileAt);
        } else {
        add_tile<3, kTileVectors>(leftAt, rightAt, kCount, isFirst, tileAt);
        }
        if (isLast) finish_tile(iM, rowCount, iN, colCount, tileAt, argument);
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

}  // namespace kernel0_product

// ke_launch:
{
  Kernel0ProductArguments kernel0_product_arguments = {y, x, w, bias, kernel0_product_scratch};
  *(int64_t*)kernel0_product_scratch = 0;  // the next block to take
  context->parallel_for(context->pool, 2, kernel0_product::work, &kernel0_product_arguments);
}
