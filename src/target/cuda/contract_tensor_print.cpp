// SPDX-License-Identifier: Apache-2.0
//
// The launch that multiplies tiles. A block computes 128 x 128 sums: one thread copies slices of
// both operands to a ring in shared memory, and two warpgroups of 64 rows each wait for them,
// multiply, and give them back. Then the sums go through shared memory, a warp's rows to the same
// warp, so that the epilogue (contract_tensor_finish.cpp) walks whole rows.
#include <fmt/format.h>

#include <algorithm>

#include "target/cuda/contract_parts.hpp"
#include "target/cuda/contract_tensor_finish.hpp"

namespace ke::cuda {
namespace {

using target::CodeWriter;
using target::ContractShape;

constexpr int64_t kProductThreads = 384, kCombineThreads = 256;
constexpr int64_t kCombineRows = kCombineThreads / 32;  // a warp each
constexpr int64_t kTileSums = kTileRows * kTileRows;
constexpr int64_t kSumsPitch = kTileRows + 8;  // two rows' pairs of columns meet in no bank
constexpr int64_t kTilesInGroup = 8;           // down m before the next n: they share slices in L2

class TensorPrinter {
 public:
  TensorPrinter(PrintContext& context, const ContractShape& shape, const TensorPlan& plan)
      : context_(context),
        shape_(shape),
        plan_(plan),
        axes_(contract_axes(context, shape)),
        finish_(context, shape, plan, axes_, out_) {}

  Result<KernelCode> run() {
    const std::string& name = context_.kernel.name;
    const PackedOperand &a = plan_.operands[0], &b = plan_.operands[1];
    if (!plan_.exact) {
      launch(name + "_extents", extents_blocks(plan_, a) + extents_blocks(plan_, b), kPackThreads,
             extents_shared_bytes(plan_));
    }
    if (plan_.packs()) {
      launch(name + "_pack", pack_blocks(plan_, a) + pack_blocks(plan_, b), kPackThreads,
             pack_shared_bytes(plan_));
    }
    launch(name + "_product", plan_.tiles() * plan_.split_k, kProductThreads, plan_.shared_bytes);
    out_.lines(print_packing(context_, shape_, plan_));
    out_.line("");
    print_product();
    if (plan_.splits()) {
      out_.line("");
      print_combine();
      launch(name + "_combine", plan_.tiles() * kTileRows / kCombineRows, kCombineThreads, 0);
    }
    code_.scratch_bytes = plan_.scratch_bytes;
    code_.functions = out_.take();
    code_.schedule = words();
    return std::move(code_);
  }

 private:
  void launch(const std::string& function, int64_t blocks, int64_t threads, int64_t shared) {
    code_.launches.push_back({function, blocks, 1, threads, shared});
  }

  std::string words() const {
    const std::string operands =
        plan_.exact        ? fmt::format("{} operands as they are", enum_name(plan_.part))
        : plan_.terms == 3 ? "fp32 operands as two fp16 parts each, three products"
                           : "fp32 operands rounded to fp16 parts, one product";
    std::string gathered;
    for (const PackedOperand& operand : plan_.operands) {
      if (operand.gather == nullptr) continue;
      gathered += fmt::format("; {} gathered from {}", operand.name,
                              operand.gather->in_place ? "where it lies" : "a packed copy");
    }
    const std::string split =
        plan_.splits() ? fmt::format(", k in {} parts", plan_.split_k) : std::string();
    return fmt::format(
        "Schedule: m {}, n {}, k {} on tensor cores; {}{}; tiles of 128 x 128{}, {} slices of 64 "
        "in shared memory.",
        shape_.m, shape_.n, shape_.k, operands, gathered, split, plan_.stages);
  }

  const std::string& name_of(int axis) const { return axes_[static_cast<size_t>(axis)].variable; }

  // Where a tile is, and its batch, from its number among all.
  void print_tile(const std::string& tile_of_all) {
    const int64_t tiles_m = plan_.tiles_m, tiles_n = plan_.tiles_n;
    out_.line(fmt::format("const int tileIndex = {} % {};", tile_of_all, tiles_m * tiles_n));
    if (tiles_m > 1) {
      const int64_t group = std::min(kTilesInGroup, tiles_m);
      out_.line(
          fmt::format("const int firstOfGroup = tileIndex / {} * {};", group * tiles_n, group));
      const bool whole = tiles_m % group == 0;
      out_.line(whole ? fmt::format("const int sizeOfGroup = {};", group)
                      : fmt::format("const int sizeOfGroup = {0} - firstOfGroup < {1} ? {0} - "
                                    "firstOfGroup : {1};",
                                    tiles_m, group));
      out_.line(fmt::format("const int indexInGroup = tileIndex % {};", group * tiles_n));
      out_.line(
          "const int tileM = firstOfGroup + indexInGroup % sizeOfGroup, tileN = indexInGroup / "
          "sizeOfGroup;");
    } else {
      out_.line(
          fmt::format("const int tileM = tileIndex / {0}, tileN = tileIndex % {0};", tiles_n));
    }
    out_.line(fmt::format("const int restOfBlock = {} / {};", tile_of_all, tiles_m * tiles_n));
    print_batch(out_, shape_, axes_, "restOfBlock");
  }

  void print_begins() { out_.line("const int mBegin = tileM * 128, nBegin = tileN * 128;"); }

  // Where k is split, blocks of the same part follow each other.
  void print_part_of_block() {
    if (!plan_.splits()) {
      print_tile("(int)blockIdx.x");
      return print_begins();
    }
    out_.line(
        fmt::format("const int tileOfAll = (int)blockIdx.x % {0}, partOfK = (int)blockIdx.x / {0};",
                    plan_.tiles()));
    print_tile("tileOfAll");
    if (plan_.gathers()) print_begins();
    const int64_t slices = plan_.part_slices;
    out_.line(fmt::format("const int sliceBegin = partOfK * {};", slices));
    out_.line(plan_.slices % slices == 0
                  ? fmt::format("const int sliceEnd = sliceBegin + {};", slices)
                  : fmt::format("const int sliceEnd = sliceBegin + {0} < {1} ? sliceBegin + {0} : "
                                "{1};",
                                slices, plan_.slices));
  }
  // The loop over the block's slices, and how many came before.
  std::string slice_loop() const {
    if (plan_.splits()) return "for (int kSlice = sliceBegin; kSlice < sliceEnd; ++kSlice)";
    return fmt::format("for (int kSlice = 0; kSlice < {}; ++kSlice)", plan_.slices);
  }
  std::string slices_before() const { return plan_.splits() ? "kSlice - sliceBegin" : "kSlice"; }

  // --- The product -------------------------------------------------------------------------------

  void print_product() {
    out_.open(function_head(context_, context_.kernel.name + "_product", kProductThreads,
                            plan_.scratch_bytes > 0,
                            /*alone=*/true));
    out_.line("const int threadIndex = (int)threadIdx.x;");
    print_part_of_block();
    const int64_t room = plan_.shared_bytes - 1024 - (8 * (2 * plan_.stages + 1) + 15) / 16 * 16;
    out_.line("char* const allStages = ke_shared_tiles();");
    out_.line(fmt::format("uint64_t* const stageFull = (uint64_t*)(allStages + {});", room));
    out_.line(
        fmt::format("uint64_t* const stageEmpty = stageFull + {0}, *const allDone = stageFull "
                    "+ {1};",
                    plan_.stages, 2 * plan_.stages));
    out_.open("if (threadIndex == 0)");
    out_.open(fmt::format("for (int stageAt = 0; stageAt < {}; ++stageAt)", plan_.stages));
    out_.line(fmt::format("ke_barrier_make(stageFull + stageAt, {});", arrivals()));
    out_.line("ke_barrier_make(stageEmpty + stageAt, 8);");
    out_.close();
    out_.line("ke_barrier_make(allDone, 8);");
    out_.line("ke_barriers_made();");
    out_.close();
    out_.line("__syncthreads();");
    out_.open("if (threadIndex < 128)");
    print_producer();
    out_.otherwise();
    print_consumers();
    out_.close();
    out_.close();
  }

  // What fills a stage: the thread that copies tiles, and each warp that gathers pieces.
  int64_t arrivals() const { return (copies_tiles() ? 1 : 0) + (plan_.gathers() ? 4 : 0); }
  bool copies_tiles() const {
    return plan_.operands[0].gather == nullptr || plan_.operands[1].gather == nullptr;
  }

  void print_producer() {
    if (plan_.gathers()) return print_gatherers();
    out_.line("ke_fewer_registers<24>();");
    out_.open("if (threadIndex == 0)");
    print_tile_sources();
    out_.line("int stageIndex = 0, stageParity = 1;");
    out_.open(slice_loop());
    print_wait_for_stage();
    print_tile_copies();
    print_next_stage();
    out_.close();
    out_.close();
  }

  void print_tile_sources() {
    for (const PackedOperand& operand : plan_.operands) {
      if (operand.gather != nullptr) continue;
      out_.line(fmt::format(
          "const char* const from{} = scratchRoom + INT64_C({}) + ((int64_t)restOfBlock * {} + {}) "
          "* {};",
          operand.name, operand.tiles_at, operand.row_blocks,
          operand.name == "A" ? "tileM" : "tileN", plan_.slices * plan_.parts() * kTileBytes));
    }
  }

  void print_wait_for_stage() {
    if (plan_.part_slices > plan_.stages) {
      out_.line(fmt::format("if ({} >= {}) ke_barrier_wait(stageEmpty + stageIndex, stageParity);",
                            slices_before(), plan_.stages));
    }
    out_.line(
        fmt::format("char* const toStage = allStages + stageIndex * {};", plan_.stage_bytes()));
  }

  // Where an operand's tiles are in a stage.
  std::string place_in_stage(const PackedOperand& operand) const {
    return operand.name == "A" ? "toStage"
                               : fmt::format("toStage + {}", plan_.parts() * kTileBytes);
  }

  void print_tile_copies() {
    const int64_t bytes = plan_.parts() * kTileBytes;
    const int64_t count = plan_.gathers() ? 1 : 2;
    out_.line(fmt::format("ke_barrier_expect(stageFull + stageIndex, {});", count * bytes));
    for (const PackedOperand& operand : plan_.operands) {
      if (operand.gather != nullptr) continue;
      out_.line(
          fmt::format("ke_bulk_copy({0}, from{1} + (int64_t)kSlice * {2}, {2}, stageFull + "
                      "stageIndex);",
                      place_in_stage(operand), operand.name, bytes));
    }
  }

  // Pieces of a row go to eight neighbouring threads. A slice is handed over when later ones are on
  // their way.
  void print_gatherers() {
    const int64_t ahead = plan_.slices_ahead();
    out_.line("ke_fewer_registers<72>();");
    out_.line("const int pieceIndex = threadIndex % 8;");
    if (copies_tiles()) print_tile_sources();
    out_.line("int stageIndex = 0, stageParity = 1, stageReady = 0;");
    out_.open(slice_loop());
    print_wait_for_stage();
    if (copies_tiles()) {
      out_.open("if (threadIndex == 0)");
      print_tile_copies();
      out_.close();
    }
    for (const PackedOperand& operand : plan_.operands) {
      if (operand.gather != nullptr) print_gather(operand);
    }
    out_.line("ke_copies_commit();");
    if (ahead > 0) out_.open(fmt::format("if ({} >= {})", slices_before(), ahead));
    out_.line(fmt::format("ke_copies_wait<{}>();", ahead));
    print_hand_over();
    if (ahead > 0) out_.close();
    print_next_stage();
    out_.close();
    if (ahead == 0) return;
    out_.line("ke_copies_wait<0>();");
    std::string left = std::to_string(std::min(ahead, plan_.part_slices));
    if (plan_.slices % plan_.part_slices != 0 && plan_.slices % plan_.part_slices < ahead) {
      out_.line(fmt::format("const int slicesOfPart = sliceEnd - sliceBegin;"));
      left = fmt::format("(slicesOfPart < {0} ? slicesOfPart : {0})", left);
    }
    out_.open(fmt::format("for (int leftOver = 0; leftOver < {}; ++leftOver)", left));
    print_hand_over();
    out_.close();
  }

  void print_hand_over() {
    out_.line("ke_written_for_products();");
    out_.line("__syncwarp();");
    out_.line("if (threadIndex % 32 == 0) ke_barrier_arrive(stageFull + stageReady);");
    out_.line(fmt::format("if (++stageReady == {}) stageReady = 0;", plan_.stages));
  }

  void print_gather(const PackedOperand& operand) {
    const Gather& gather = *operand.gather;
    std::vector<AxisBinding> axes = axes_;
    axes[static_cast<size_t>(shape_.k_axis())] = {"pieceOfK", shape_.k / kPieceElements};
    const std::string& row = name_of(operand.row_axis);
    out_.line("#pragma unroll");
    out_.open("for (int turnIndex = 0; turnIndex < 8; ++turnIndex)");
    out_.line("const int rowIndex = turnIndex * 16 + threadIndex / 8;");
    out_.line(fmt::format("const int {} = {}Begin + rowIndex, pieceOfK = kSlice * 8 + pieceIndex;",
                          row, operand.name == "A" ? "m" : "n"));
    ScalarPrinter printer(context_, out_, axes);
    std::string exists;
    const auto both = [&](const std::string& text) {
      exists += (exists.empty() ? "" : " && ") + text;
    };
    if (operand.rows % kTileRows != 0) both(fmt::format("{} < {}", row, operand.rows));
    if (shape_.k % kTileDepth != 0) {
      both(fmt::format("pieceOfK < {}", shape_.k / kPieceElements));
    }
    if (gather.inside) both(printer.print(gather.inside).text);
    out_.line(fmt::format("const bool pieceExists = {};", exists.empty() ? "true" : exists));
    const std::string from = gather.in_place
                                 ? "(const char*)" + context_.pointer(gather.tensor)
                                 : fmt::format("scratchRoom + INT64_C({})", operand.tiles_at);
    out_.line(
        fmt::format("const char* const fromPiece = {} + (int64_t)(pieceExists ? {} : 0) * "
                    "16;",
                    from, printer.print(gather.piece).text));
    out_.line(fmt::format("char* const toPiece = {} + ke_tile_place(rowIndex, pieceIndex);",
                          place_in_stage(operand)));
    out_.line("ke_copy_16_if(pieceExists, toPiece, fromPiece);");
    if (plan_.parts() == 2) {
      out_.line(fmt::format("ke_copy_16_if(pieceExists, toPiece + {}, fromPiece + INT64_C({}));",
                            kTileBytes, gather.packed_elements() * 2));
    }
    out_.close();
  }

  void print_next_stage() {
    out_.line(
        fmt::format("if (++stageIndex == {}) stageIndex = 0, stageParity ^= 1;", plan_.stages));
  }

  void print_consumers() {
    out_.line(fmt::format("ke_more_registers<{}>();", plan_.gathers() ? 216 : 240));
    out_.line("const int groupIndex = threadIndex / 128 - 1, warpIndex = threadIndex / 32 - 4;");
    out_.line("const int laneIndex = threadIndex % 32;");
    out_.line("float mainSums[64] = {}, tileSums[64] = {};");
    if (plan_.terms == 3) out_.line("float crossSums[64] = {};");
    out_.line("int stageIndex = 0, stageParity = 0;");
    if (plan_.terms == 1) out_.line("int stageBefore = 0;");
    out_.open(slice_loop());
    print_slice();
    out_.close();
    out_.line("ke_products_wait<0>();");
    print_last_add();
    print_sums();
    if (!plan_.splits()) print_rows();
  }

  void print_add() {
    out_.line("#pragma unroll");
    out_.line(
        "for (int eachOne = 0; eachOne < 64; ++eachOne) tileSums[eachOne] += mainSums[eachOne];");
  }

  // What is left of the last slices. Only the last part of k may have such.
  void print_last_add() {
    if (plan_.slices % plan_.add_every == 0) return;
    if (plan_.splits()) out_.open(fmt::format("if (sliceEnd % {} != 0)", plan_.add_every));
    print_add();
    if (plan_.splits()) out_.close();
  }

  void print_slice() {
    const std::string product =
        plan_.part == ir::DType::bfloat16 ? "ke_product_bf16" : "ke_product_f16";
    const int64_t operand_bytes = plan_.parts() * kTileBytes;
    const int64_t low = kTileBytes / 16;
    out_.line("ke_barrier_wait(stageFull + stageIndex, stageParity);");
    out_.line(fmt::format("const char* const fromStage = allStages + stageIndex * {};",
                          plan_.stage_bytes()));
    out_.line("const uint64_t tileA = ke_tile(fromStage + groupIndex * 8192);");
    out_.line(fmt::format("const uint64_t tileB = ke_tile(fromStage + {});", operand_bytes));
    out_.line("ke_products_begin();");
    const std::string fresh = plan_.add_every == 1
                                  ? "stepOfK > 0"
                                  : fmt::format("stepOfK > 0 || kSlice % {} != 0", plan_.add_every);
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int stepOfK = 0; stepOfK < 4; ++stepOfK) {}(mainSums, tileA + 2 * stepOfK, "
        "tileB + 2 * stepOfK, {});",
        product, fresh));
    out_.line("ke_products_commit();");
    if (plan_.terms == 1) return print_one_term();
    out_.line("#pragma unroll");
    out_.open("for (int stepOfK = 0; stepOfK < 4; ++stepOfK)");
    out_.line(fmt::format("{}(crossSums, tileA + 2 * stepOfK, tileB + {} + 2 * stepOfK, 1);",
                          product, low));
    out_.line(fmt::format("{}(crossSums, tileA + {} + 2 * stepOfK, tileB + 2 * stepOfK, 1);",
                          product, low));
    out_.close();
    out_.line("ke_products_commit();");
    // They are added while the tensor cores have the other terms to do.
    out_.line("ke_products_wait<1>();");
    print_add();
    out_.line("ke_products_wait<0>();");
    out_.line("if (laneIndex == 0) ke_barrier_arrive(stageEmpty + stageIndex);");
    print_next_stage();
  }

  // The slice before is done when only this one is on its way.
  void print_one_term() {
    out_.line("ke_products_wait<1>();");
    out_.line(
        fmt::format("if ({} > 0 && laneIndex == 0) ke_barrier_arrive(stageEmpty + stageBefore);",
                    slices_before()));
    out_.open(fmt::format("if (kSlice % {} == {})", plan_.add_every, plan_.add_every - 1));
    out_.line("ke_products_wait<0>();");
    print_add();
    out_.close();
    out_.line("stageBefore = stageIndex;");
    print_next_stage();
  }

  // To shared memory, where both warpgroups have read their last slice; those of a part of k to
  // scratch.
  void print_sums() {
    const int64_t pitch = plan_.splits() ? kTileRows : kSumsPitch;
    if (plan_.splits()) {
      out_.line(
          fmt::format("float* const warpSums = (float*)(scratchRoom + INT64_C({})) + "
                      "(int64_t)blockIdx.x * {} + warpIndex * {};",
                      plan_.sums_at, kTileSums, 16 * kTileRows));
    } else {
      out_.line("if (laneIndex == 0) ke_barrier_arrive(allDone);");
      out_.line("ke_barrier_wait(allDone, 0);");
      out_.line(fmt::format("float* const warpSums = (float*)allStages + warpIndex * {};",
                            16 * kSumsPitch));
    }
    const bool looks = !plan_.exact && !plan_.splits();
    if (looks) out_.line("int lacksParts = 0;");
    out_.line("#pragma unroll");
    out_.open("for (int pairIndex = 0; pairIndex < 32; ++pairIndex)");
    out_.line("alignas(8) float pairOfSums[2];");
    out_.line("#pragma unroll");
    const std::string cross =
        plan_.terms == 3 ? " + crossSums[pairIndex * 2 + eachOne] * (1.0f / 2048)" : "";
    out_.line(
        fmt::format("for (int eachOne = 0; eachOne < 2; ++eachOne) pairOfSums[eachOne] = "
                    "tileSums[pairIndex * 2 + eachOne]{};",
                    cross));
    if (looks) {
      out_.line(
          "lacksParts |= pairOfSums[0] != pairOfSums[0] || pairOfSums[1] != pairOfSums[1] ? 1 : "
          "0;");
    }
    out_.line(
        fmt::format("ke_copy<2>(warpSums + (laneIndex / 4 + pairIndex % 2 * 8) * {} + "
                    "pairIndex / 2 * 8 + laneIndex % 4 * 2, pairOfSums);",
                    pitch));
    out_.close();
    if (looks) {
      out_.line(
          "lacksParts = ke_join<32>(lacksParts, ke_shared(), [](int a, int b) { return a | b; });");
    }
    if (!plan_.splits()) out_.line("__syncwarp();");
  }

  // Each warp its 16 rows.
  void print_rows() {
    finish_.print_begin();
    if (!plan_.exact) print_lacking_rows();
    out_.line("#pragma unroll 2");
    print_row_loop();
    if (!plan_.exact) finish_.print_unscaled("warpIndex * 16 + rowIndex", "lacksParts != 0");
    finish_.print_outputs();
    out_.close();
  }

  void print_row_loop() {
    const std::string& m = name_of(shape_.m_axis());
    out_.open("for (int rowIndex = 0; rowIndex < 16; ++rowIndex)");
    out_.line(fmt::format("const int {} = mBegin + warpIndex * 16 + rowIndex;", m));
    if (shape_.m % kTileRows != 0) out_.line(fmt::format("if ({} >= {}) break;", m, shape_.m));
    out_.line("alignas(16) float rowSums[4];");
    finish_.print_load("rowSums", sums_of_row());
  }
  static std::string sums_of_row() { return fmt::format("warpSums + rowIndex * {}", kSumsPitch); }

  // Apart from the usual way, which so keeps its pace: a warp that lacks anything unscales all its
  // rows, and puts them back.
  void print_lacking_rows() {
    out_.open("if (lacksParts != 0)");
    out_.line("#pragma unroll 1");
    print_row_loop();
    finish_.print_unscaled("warpIndex * 16 + rowIndex");
    finish_.print_plain_sums();
    finish_.print_store(sums_of_row());
    out_.close();
    out_.line("#pragma unroll");
    out_.line("for (int eachOne = 0; eachOne < 4; ++eachOne) columnInverses[eachOne] = 1.0f;");
    out_.close();
  }

  // --- Parts of k --------------------------------------------------------------------------------

  // A warp adds up one row of a tile, in the order of k.
  void print_combine() {
    const std::string& m = name_of(shape_.m_axis());
    out_.open(function_head(context_, context_.kernel.name + "_combine", kCombineThreads, true));
    out_.line("const int laneIndex = (int)threadIdx.x % 32, warpIndex = (int)threadIdx.x / 32;");
    out_.line(fmt::format("const int tileOfAll = (int)blockIdx.x / {};", kTileRows / kCombineRows));
    out_.line(fmt::format("const int rowIndex = (int)blockIdx.x % {} * {} + warpIndex;",
                          kTileRows / kCombineRows, kCombineRows));
    print_tile("tileOfAll");
    print_begins();
    out_.line(fmt::format("const int {} = mBegin + rowIndex;", m));
    if (shape_.m % kTileRows != 0) out_.line(fmt::format("if ({} >= {}) return;", m, shape_.m));
    finish_.print_begin();
    out_.line(
        fmt::format("const float* const firstSums = (const float*)(scratchRoom + INT64_C({})) + "
                    "(int64_t)tileOfAll * {} + rowIndex * {};",
                    plan_.sums_at, kTileSums, kTileRows));
    out_.line("alignas(16) float rowSums[4] = {};");
    out_.line("#pragma unroll 4");
    out_.open(fmt::format("for (int partOfK = 0; partOfK < {}; ++partOfK)", plan_.split_k));
    out_.line("alignas(16) float sumsOfPart[4];");
    finish_.print_load("sumsOfPart",
                       fmt::format("firstSums + (int64_t)partOfK * {}", plan_.tiles() * kTileSums));
    out_.line("#pragma unroll");
    out_.line(
        "for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] += sumsOfPart[eachOne];");
    out_.close();
    if (!plan_.exact) {
      finish_.print_unscaled("rowIndex");
      finish_.print_plain_sums();
    }
    finish_.print_outputs();
    out_.close();
  }

  PrintContext& context_;
  const ContractShape& shape_;
  const TensorPlan& plan_;
  std::vector<AxisBinding> axes_;
  CodeWriter out_;
  TileFinish finish_;
  KernelCode code_;
};

}  // namespace

Result<KernelCode> print_tensor_kernel(PrintContext& context, const ContractShape& shape,
                                       const TensorPlan& plan) {
  TRY(expect_int_extents(context, shape));
  return TensorPrinter(context, shape, plan).run();
}

}  // namespace ke::cuda
