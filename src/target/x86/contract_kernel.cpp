// SPDX-License-Identifier: Apache-2.0
//
// The register tile, the epilogue and the loops over blocks. Sums that outlive one block of k are
// kept tile by tile, so that the epilogue alone knows how outputs are laid out.
#include <fmt/format.h>

#include <algorithm>

#include "target/x86/contract_print.hpp"
#include "target/x86/vector_printer.hpp"

namespace ke::x86 {
namespace {

using target::CodeWriter;

int64_t rows_left(const ContractCode& code) { return code.shape.m % code.schedule.tile_m; }

int64_t vectors_left(const ContractCode& code) {
  return (code.shape.n % code.schedule.tile_n + code.lanes() - 1) / code.lanes();
}

bool is_written(const ContractCode& code, ir::TensorId id) {
  const std::vector<ir::TensorId>& writes = code.context.kernel.writes;
  return std::find(writes.begin(), writes.end(), id) != writes.end();
}

// The statements that turn a sum into outputs, for `lanes` columns from iN.
void print_finish(ContractCode& code, int lanes) {
  CodeWriter& out = code.out;
  const bool vector = lanes > 1;
  std::vector<ir::TensorId> tensors = code.context.kernel.writes;
  for (size_t i = 1; i < code.shape.stages.size(); ++i) {
    ir::walk(code.shape.stages[i].body, [&](const ir::Expr& expr) {
      if (expr.kind == ir::Expr::Kind::load) tensors.push_back(expr.tensor);
    });
  }
  code.open_function(
      fmt::format(
          "static inline void finish_{}({}int64_t iM, int64_t iN, {} tileSum, void* argument)",
          vector ? "vector" : "element", code.batch_parameters(),
          vector ? code.vector : code.element),
      tensors);
  std::vector<AxisBinding> axes;
  for (int axis = 0; axis < code.shape.m_axis(); ++axis)
    axes.push_back({fmt::format("iB{}", axis)});
  axes.push_back({"iM"});
  axes.push_back({"iN", vector});
  VectorPrinter printer(code.context, lanes, std::move(axes));
  const StoreKind kind = code.schedule.streaming ? StoreKind::streaming : StoreKind::plain;
  for (const ir::FusedStage& stage : code.shape.stages) {
    const bool is_contraction = &stage == &code.shape.stages.front();
    const Value computed =
        is_contraction ? Value{"tileSum", code.shape.dtype, vector} : printer.print(stage.body);
    const Value value = printer.print_cast(computed, code.context.tensor(stage.output).dtype);
    if (is_written(code, stage.output)) printer.store(stage.output, stage.store, value, kind);
    printer.hold(stage.output, {value.text, value.vector});
  }
  out.lines(printer.invariant());
  out.lines(printer.statements());
  out.close();
  out.line("");
}

// The last panel is narrower than a vector, so that no overlapping vector can finish it.
bool finishes_by_element(const ContractCode& code) {
  return code.shape.n % code.lanes() != 0 && code.shape.n % code.schedule.tile_n < code.lanes();
}

void print_finish_tile(ContractCode& code) {
  CodeWriter& out = code.out;
  const std::string batch = code.batch_arguments();
  code.context.helpers.insert("load:" + code.vector);
  code.open_function(
      fmt::format("static void finish_tile({}int64_t iM, int64_t rowCount, int64_t iN, "
                  "int64_t colCount, const {}* tile, void* argument)",
                  code.batch_parameters(), code.element),
      {});
  out.open("for (int64_t row = 0; row < rowCount; ++row, tile += kTileN)");
  if (finishes_by_element(code)) {
    out.line("int64_t col = 0;");
    out.open("for (; col + kLanes <= colCount; col += kLanes)");
    out.line(fmt::format("finish_vector({}iM + row, iN + col, load_{}(tile + col), argument);",
                         batch, code.vector));
    out.close();
    out.open("for (; col < colCount; ++col)");
    out.line(fmt::format("finish_element({}iM + row, iN + col, tile[col], argument);", batch));
    out.close();
  } else {
    const bool overlaps = code.shape.n % code.lanes() != 0;
    if (overlaps) out.line("// The last vector may compute some columns once more.");
    out.open("for (int64_t next = 0; next < colCount; next += kLanes)");
    out.line(overlaps ? "const int64_t col = next + kLanes <= colCount ? next : colCount - kLanes;"
                      : "const int64_t col = next;");
    out.line(fmt::format("finish_vector({}iM + row, iN + col, load_{}(tile + col), argument);",
                         batch, code.vector));
    out.close();
  }
  out.close();
  out.close();
  out.line("");
}

enum class Columns : uint8_t { any, whole, edge };  // which panels a call may meet

// name<rows, vectors>(arguments) for the tile at hand, edges included.
void print_by_shape(ContractCode& code, const std::string& name, const std::string& arguments,
                    Columns columns) {
  CodeWriter& out = code.out;
  const int64_t vectors = vectors_left(code);
  const bool column_edge = vectors != 0 && vectors != code.schedule.vectors();
  const auto call = [&](const std::string& rows, const std::string& width) {
    out.line(fmt::format("{}<{}, {}>({});", name, rows, width, arguments));
  };
  const auto by_columns = [&](const std::string& rows) {
    if (columns == Columns::whole || vectors == code.schedule.vectors()) {
      return call(rows, "kTileVectors");
    }
    if (columns == Columns::edge) return call(rows, std::to_string(vectors));
    if (!column_edge) return call(rows, "kTileVectors");
    out.open("if (colCount == kTileN)");
    call(rows, "kTileVectors");
    out.close(" else {");
    call("  " + rows, std::to_string(vectors));
    out.line("}");
  };
  if (rows_left(code) == 0) return by_columns("kTileM");
  out.open("if (rowCount == kTileM)");
  by_columns("kTileM");
  out.close(" else {");
  by_columns(std::to_string(rows_left(code)));
  out.line("}");
}

void print_add_tile(ContractCode& code) {
  CodeWriter& out = code.out;
  const bool keeps = code.grid.keeps_sums;
  out.line(keeps ? "// The same, added to a tile in memory, or starting it."
                 : "// The same, into a tile in memory.");
  out.line("template <int kRows, int kVectors>");
  code.open_function(
      fmt::format(
          "static void add_tile(const {0}* left, const {0}* right, int64_t kCount, {1}{0}* tile)",
          code.element, keeps ? "bool isFirst, " : ""),
      {});
  out.line(fmt::format("{} sum[kRows][kVectors] = {{}};", code.vector));
  out.line("multiply_tile<kRows, kVectors>(left, right, kCount, sum);");
  code.context.helpers.insert("store:" + code.vector);
  const std::string loops = "for (int i = 0; i < kRows; ++i)";
  const std::string inner = "for (int v = 0; v < kVectors; ++v)";
  if (keeps) {
    out.open("if (!isFirst)");
    out.line("#pragma GCC unroll 32");
    out.open(loops);
    out.line("#pragma GCC unroll 8");
    out.line(fmt::format("{} sum[i][v] += load_{}(tile + i * kTileN + v * kLanes);", inner,
                         code.vector));
    out.close();
    out.close();
  }
  out.line("#pragma GCC unroll 32");
  out.open(loops);
  out.line("#pragma GCC unroll 8");
  out.line(
      fmt::format("{} store_{}(tile + i * kTileN + v * kLanes, sum[i][v]);", inner, code.vector));
  out.close();
  out.close();
  out.line("");
}

void print_finish_product(ContractCode& code) {
  CodeWriter& out = code.out;
  out.line("// The same, finished without leaving the registers.");
  out.line("template <int kRows, int kVectors>");
  code.open_function(
      fmt::format("static void finish_product({0}int64_t iM, int64_t iN, const {1}* left, "
                  "const {1}* right, int64_t kCount, void* argument)",
                  code.batch_parameters(), code.element),
      {});
  out.line(fmt::format("{} sum[kRows][kVectors] = {{}};", code.vector));
  out.line("multiply_tile<kRows, kVectors>(left, right, kCount, sum);");
  out.line("#pragma GCC unroll 32");
  out.open("for (int i = 0; i < kRows; ++i)");
  out.line("#pragma GCC unroll 8");
  out.open("for (int v = 0; v < kVectors; ++v)");
  out.line(fmt::format("finish_vector({}iM + i, iN + v * kLanes, sum[i][v], argument);",
                       code.batch_arguments()));
  out.close();
  out.close();
  out.close();
  out.line("");
}

// --- Blocks -------------------------------------------------------------------------------------

// Where the block at `place` lies.
void print_geometry(ContractCode& code) {
  CodeWriter& out = code.out;
  out.line("const int64_t firstM = placeId % kBlocksM * kBlockM;");
  out.line("const int64_t firstN = placeId / kBlocksM % kBlocksN * kBlockN;");
  out.line("const int64_t endM = kM - firstM < kBlockM ? kM : firstM + kBlockM;");
  out.line("const int64_t endN = kN - firstN < kBlockN ? kN : firstN + kBlockN;");
  int64_t below = code.grid.blocks_m * code.grid.blocks_n;
  for (int axis = code.shape.m_axis(); axis-- > 0;) {
    const int64_t extent = code.shape.batch[static_cast<size_t>(axis)].extent;
    out.line(fmt::format("const int64_t iB{} = placeId / {} % {};", axis, below, extent));
    below *= extent;
  }
}

std::string place_of(const ContractCode& code, const StridedOperand& operand, const char* row) {
  return fmt::format("{}{} + {} * {} + iK * {}", code.context.pointer(operand.tensor),
                     code.batch_offset(operand), row, operand.row, operand.depth);
}

void print_tile_call(ContractCode& code) {
  CodeWriter& out = code.out;
  const ContractSchedule& s = code.schedule;
  const std::string left = s.pack_a == Packing::none ? place_of(code, *code.shape.a.strided, "iM")
                                                     : "packedA + (iM - firstM) * kCount";
  out.line(fmt::format("const {}* const leftAt = {};", code.element, left));
  out.line("const int64_t rowCount = endM - iM < kTileM ? endM - iM : kTileM;");
  const std::string batch = code.batch_arguments();
  const std::string product = fmt::format("{}iM, iN, leftAt, rightAt, kCount, argument", batch);
  const std::string sums =
      "leftAt, rightAt, kCount, " + std::string(code.grid.keeps_sums ? "isFirst, " : "") + "tileAt";
  if (code.finishes_in_registers) {
    if (code.shape.n % code.lanes() == 0) {
      return print_by_shape(code, "finish_product", product, Columns::any);
    }
    out.open("if (colCount == kTileN)");
    print_by_shape(code, "finish_product", product, Columns::whole);
    out.close(" else {");
    print_by_shape(code, "add_tile", sums, Columns::edge);
    out.line(fmt::format("finish_tile({}iM, rowCount, iN, colCount, tileAt, argument);", batch));
    return out.line("}");
  }
  print_by_shape(code, "add_tile", sums, Columns::any);
  const std::string finish =
      fmt::format("finish_tile({}iM, rowCount, iN, colCount, tileAt, argument);", batch);
  if (s.split_k == 1) out.line((code.grid.keeps_sums ? "if (isLast) " : "") + finish);
  if (code.grid.keeps_sums) out.line("tileAt += kTileM * kTileN;");
}

void print_block_of_k(ContractCode& code) {
  CodeWriter& out = code.out;
  const ContractSchedule& s = code.schedule;
  const std::string batch = code.batch_arguments();
  out.line("const int64_t kCount = kK - iK < kBlockK ? kK - iK : kBlockK;");
  if (code.grid.keeps_sums) {
    out.line(s.split_k > 1 ? "const bool isFirst = iK == firstK;"
                           : "const bool isFirst = iK == 0;");
    if (s.split_k == 1) out.line("const bool isLast = iK + kCount == kK;");
    out.line(fmt::format("{}* tileAt = blockSums;", code.element));
  }
  if (s.pack_a != Packing::none) {
    out.line(fmt::format("pack_a({}firstM, endM - firstM, iK, kCount, argument, packedA);", batch));
  }
  if (s.pack_b == Packing::block && code.packs_b_by_rows()) {
    out.line(fmt::format("pack_b_rows({}firstN, endN, iK, kCount, argument, packedB);", batch));
  }
  out.open("for (int64_t iN = firstN; iN < endN; iN += kTileN)");
  out.line("const int64_t colCount = endN - iN < kTileN ? endN - iN : kTileN;");
  std::string right = "packedB + (iN - firstN) * kCount";
  if (s.pack_b == Packing::none) right = place_of(code, *code.shape.b.strided, "iN");
  if (s.pack_b == Packing::whole) {
    right = fmt::format("packedB + {} * kPanelsN * kTileN + iN * kCount",
                        code.shape.batch.empty() ? "iK" : "(batchId * kK + iK)");
  }
  out.line(fmt::format("{}{}* const rightAt = {};", s.pack_b == Packing::block ? "" : "const ",
                       code.element, right));
  if (s.pack_b == Packing::block && !code.packs_b_by_rows()) {
    out.line(fmt::format("pack_b_panel({}iN, colCount, iK, kCount, argument, rightAt);", batch));
  }
  out.open("for (int64_t iM = firstM; iM < endM; iM += kTileM)");
  print_tile_call(code);
  out.close();
  out.close();
}

void print_multiply_block(ContractCode& code) {
  CodeWriter& out = code.out;
  const ContractSchedule& s = code.schedule;
  std::vector<ir::TensorId> tensors;
  if (s.pack_a == Packing::none) tensors.push_back(code.shape.a.strided->tensor);
  if (s.pack_b == Packing::none) tensors.push_back(code.shape.b.strided->tensor);
  code.open_function(
      fmt::format("static void multiply_block(int64_t blockId, {}* slotBase, void* argument)",
                  code.element),
      tensors, s.pack_b == Packing::whole || s.split_k > 1);
  if (s.split_k > 1) {
    out.line("const int64_t splitId = blockId % kSplits;");
    out.line("const int64_t placeId = blockId / kSplits;");
  } else {
    out.line("const int64_t placeId = blockId;");
  }
  print_geometry(code);
  if (s.pack_b == Packing::whole && !code.shape.batch.empty()) {
    out.line("const int64_t batchId = placeId / (kBlocksM * kBlocksN);");
  }
  if (s.pack_a != Packing::none)
    out.line(fmt::format("{}* const packedA = slotBase;", code.element));
  if (s.pack_b == Packing::block) {
    out.line(fmt::format("{}* const packedB = slotBase + kSlotB;", code.element));
  }
  if (s.pack_b == Packing::whole) {
    out.line(fmt::format("const {0}* const packedB = (const {0}*)({1} + kPackedB);", code.element,
                         code.scratch()));
  }
  if (s.split_k > 1) {
    out.line(fmt::format("{0}* const blockSums = ({0}*)({1} + kPartialSums) +", code.element,
                         code.scratch()));
    out.line("                    (splitId * kPlaces + placeId) * kTilesABlock * kTileM * kTileN;");
  } else {
    out.line(fmt::format("{}* const {} = slotBase + kSlotSums;", code.element,
                         code.grid.keeps_sums ? "blockSums" : "tileAt"));
  }
  if (code.grid.blocks_k == 1) {
    out.line("constexpr int64_t iK = 0;");
    if (s.split_k > 1) out.line("constexpr int64_t firstK = 0;");
    print_block_of_k(code);
  } else if (s.split_k > 1) {
    out.line("const int64_t firstK = splitId * kSplitK;");
    out.line("const int64_t endK = kK - firstK < kSplitK ? kK : firstK + kSplitK;");
    out.open("for (int64_t iK = firstK; iK < endK; iK += kBlockK)");
    print_block_of_k(code);
    out.close();
  } else {
    out.open("for (int64_t iK = 0; iK < kK; iK += kBlockK)");
    print_block_of_k(code);
    out.close();
  }
  out.close();
  out.line("");
}

void print_work(ContractCode& code) {
  CodeWriter& out = code.out;
  out.line("// One thread: takes blocks until none is left.");
  code.open_function("static void work(int64_t threadId, void* argument)", {}, true);
  out.line(fmt::format("int64_t* const nextBlock = (int64_t*){};", code.scratch()));
  out.line(fmt::format("{0}* const slotBase = ({0}*)({1} + kSlots) + threadId * kSlot;",
                       code.element, code.scratch()));
  out.line("int64_t blockId;");
  out.open("while ((blockId = __atomic_fetch_add(nextBlock, 1, __ATOMIC_RELAXED)) < kBlocks)");
  out.line("multiply_block(blockId, slotBase, argument);");
  out.close();
  if (code.schedule.streaming && code.schedule.split_k == 1) out.line("__builtin_ia32_sfence();");
  out.close();
  out.line("");
}

void print_combine(ContractCode& code) {
  CodeWriter& out = code.out;
  out.line("// Adds the parts of one block's tiles and finishes them.");
  code.open_function("static void combine(int64_t placeId, void* argument)", {}, true);
  out.line("constexpr int64_t kBlockSums = kTilesABlock * kTileM * kTileN;");
  out.line(fmt::format("const {0}* partAt = (const {0}*)({1} + kPartialSums) +", code.element,
                       code.scratch()));
  out.line("                 placeId * kBlockSums;");
  print_geometry(code);
  out.open("for (int64_t iN = firstN; iN < endN; iN += kTileN)");
  out.open("for (int64_t iM = firstM; iM < endM; iM += kTileM, partAt += kTileM * kTileN)");
  out.line(fmt::format("alignas(64) {} tileAt[kTileM * kTileN];", code.element));
  out.open("for (int64_t i = 0; i < kTileM * kTileN; ++i)");
  out.line(fmt::format("{} sumOfParts = partAt[i];", code.element));
  out.line(
      "for (int64_t s = 1; s < kSplits; ++s) sumOfParts += partAt[s * kPlaces * kBlockSums + i];");
  out.line("tileAt[i] = sumOfParts;");
  out.close();
  out.line(fmt::format("finish_tile({}iM, endM - iM < kTileM ? endM - iM : kTileM, iN,",
                       code.batch_arguments()));
  out.line("            endN - iN < kTileN ? endN - iN : kTileN, tileAt, argument);");
  out.close();
  out.close();
  if (code.schedule.streaming) out.line("__builtin_ia32_sfence();");
  out.close();
  out.line("");
}

}  // namespace

void print_epilogue(ContractCode& code) {
  code.out.line("// What follows the sum, for some columns of one row from (iM, iN) on.");
  print_finish(code, static_cast<int>(code.lanes()));
  if (finishes_by_element(code)) print_finish(code, 1);
  if (!code.finishes_in_registers || code.shape.n % code.lanes() != 0) print_finish_tile(code);
}

void print_tiles(ContractCode& code) {
  CodeWriter& out = code.out;
  code.context.helpers.insert("load:" + code.vector);
  out.line(
      "// Adds the products of kRows rows and kVectors vectors of columns over kCount steps of k.");
  out.line("template <int kRows, int kVectors>");
  out.line("static inline __attribute__((always_inline)) void multiply_tile(");
  out.open(fmt::format(
      "    const {0}* left, const {0}* right, int64_t kCount, {1} (&sum)[kRows][kVectors])",
      code.element, code.vector));
  out.line(fmt::format("#pragma GCC unroll {}", code.schedule.unroll));
  out.open("for (int64_t k = 0; k < kCount; ++k)");
  out.line(fmt::format("{} columns[kVectors];", code.vector));
  out.line("#pragma GCC unroll 8");
  out.open("for (int v = 0; v < kVectors; ++v)");
  out.line(fmt::format("columns[v] = load_{}(right + k * kStepRight + v * kLanes);", code.vector));
  out.close();
  out.line("#pragma GCC unroll 32");
  out.open("for (int i = 0; i < kRows; ++i)");
  out.line(fmt::format("const {} row = left[i * kRowLeft + k * kStepLeft];", code.element));
  out.line("#pragma GCC unroll 8");
  out.line("for (int v = 0; v < kVectors; ++v) sum[i][v] += row * columns[v];");
  out.close();
  out.close();
  out.close();
  out.line("");
  if (code.finishes_in_registers) print_finish_product(code);
  if (!code.finishes_in_registers || code.shape.n % code.lanes() != 0) print_add_tile(code);
}

void print_blocks(ContractCode& code) {
  print_multiply_block(code);
  if (code.schedule.threads > 1 && code.grid.blocks > 1) print_work(code);
  if (code.schedule.split_k > 1) print_combine(code);
}

}  // namespace ke::x86
