// SPDX-License-Identifier: Apache-2.0
//
// The launches that make tiles of operands. A block takes the rows of one tile: both operands in
// one launch, the right one's blocks after the left one's. Rows that lie next to each other in
// memory are loaded so and turned in shared memory, where element (k, row) lies at
// k * 128 + (row ^ k / 8 * 4): neither way meets a bank twice.
#include <fmt/format.h>

#include "target/cuda/contract_parts.hpp"
#include "target/cuda/contract_tensor.hpp"

namespace ke::cuda {
namespace {

using target::CodeWriter;
using target::ContractShape;

class PackPrinter {
 public:
  PackPrinter(PrintContext& context, const ContractShape& shape, const TensorPlan& plan)
      : context_(context), shape_(shape), plan_(plan), axes_(contract_axes(context, shape)) {}

  std::string run() {
    if (!plan_.exact) {
      print_function("_extents", extents_blocks(plan_, plan_.operands[0]),
                     &PackPrinter::print_extents);
    }
    if (plan_.packs()) {
      print_function("_pack", pack_blocks(plan_, plan_.operands[0]), &PackPrinter::print_pack);
    }
    return out_.take();
  }

 private:
  using Section = void (PackPrinter::*)(const PackedOperand&);

  void print_function(const std::string& suffix, int64_t left_blocks, Section section) {
    out_.open(function_head(context_, context_.kernel.name + suffix, kPackThreads,
                            plan_.scratch_bytes > 0));
    out_.line("const int threadIndex = (int)threadIdx.x;");
    const bool both = plan_.operands[0].is_packed() && plan_.operands[1].is_packed();
    if (both) {
      out_.open(fmt::format("if (blockIdx.x < {}u)", left_blocks));
      out_.line("const int blockRest = (int)blockIdx.x;");
      (this->*section)(plan_.operands[0]);
      out_.line("return;");
      out_.close();
      out_.line(fmt::format("const int blockRest = (int)(blockIdx.x - {}u);", left_blocks));
      (this->*section)(plan_.operands[1]);
    } else {
      out_.line("const int blockRest = (int)blockIdx.x;");
      (this->*section)(plan_.operands[plan_.operands[0].is_packed() ? 0 : 1]);
    }
    out_.close();
    out_.line("");
  }

  const AxisBinding& axis(int index) const { return axes_[static_cast<size_t>(index)]; }
  int lane_axis(const PackedOperand& operand) const {
    return operand.along_rows ? operand.row_axis : shape_.k_axis();
  }
  std::string first_row(const PackedOperand& operand) const {
    return operand.along_rows ? ElementLoop::first_variable(axis(operand.row_axis), operand.width)
                              : axis(operand.row_axis).variable;
  }
  std::string first_depth(const PackedOperand& operand) const {
    return operand.along_rows ? axis(shape_.k_axis()).variable
                              : ElementLoop::first_variable(axis(shape_.k_axis()), operand.width);
  }
  // Threads that load one row of k, or one of rows, at once.
  int64_t lanes(const PackedOperand& operand) const { return kTileRows / operand.width; }

  // rowBlock, `what` and the batch of a block.
  void print_block(const PackedOperand& operand, const std::string& what, int64_t count) {
    const int64_t blocks = operand.row_blocks;
    out_.line(fmt::format("const int {} = blockRest % {};", what, count));
    out_.line(fmt::format("const int rowBlock = blockRest / {} % {};", count, blocks));
    out_.line(fmt::format("const int restOfBlock = blockRest / {};", count * blocks));
    print_batch(out_, shape_, axes_, "restOfBlock");
    out_.line(fmt::format("const int tileRows = restOfBlock * {} + rowBlock;", blocks));
  }

  // A statement for each of the group's values: `before`, its place, `between`, it, `after`.
  void print_group(const PackedOperand& operand, const std::string& before,
                   const std::string& between, const std::string& after) {
    ElementLoop loop(context_, out_, axes_, lane_axis(operand), operand.width);
    loop.prepare(operand.operand->value);
    loop.open();
    const Value value = loop.element().print(operand.operand->value);
    const AxisBinding& lane = axis(lane_axis(operand));
    const std::string place = operand.width == 1
                                  ? "0"
                                  : fmt::format("{} - {}", lane.variable,
                                                ElementLoop::first_variable(lane, operand.width));
    out_.line(before + place + between + value.text + after);
    loop.close();
  }

  // --- Extents -----------------------------------------------------------------------------------

  void print_extents(const PackedOperand& operand) {
    if (operand.gather != nullptr) return print_gather_extents(context_, plan_, operand, out_);
    print_block(operand, "partOfK", operand.extent_parts);
    out_.line(fmt::format("const int kBegin = partOfK * {};", operand.extent_depth));
    out_.line(fmt::format("const int kEnd = kBegin + {0} < {1} ? kBegin + {0} : {1};",
                          operand.extent_depth, shape_.k));
    out_.line(
        fmt::format("uint32_t* const toExtents = (uint32_t*)(scratchRoom + INT64_C({})) + "
                    "((int64_t)tileRows * {} + partOfK) * 128;",
                    operand.extents_at, operand.extent_parts));
    if (operand.along_rows) {
      print_extents_along_rows(operand);
    } else {
      print_extents_along_k(operand);
    }
  }

  // A warp a row, one after the other.
  void print_extents_along_k(const PackedOperand& operand) {
    const std::string depth = first_depth(operand);
    const std::string& row = axis(operand.row_axis).variable;
    out_.open("for (int rowIndex = threadIndex / 32; rowIndex < 128; rowIndex += 8)");
    out_.line(fmt::format("const int {} = rowBlock * 128 + rowIndex;", row));
    out_.line("uint32_t rowMost = 0;");
    out_.open(fmt::format("if ({} < {})", row, operand.rows));
    out_.line("#pragma unroll 4");
    out_.open(fmt::format("for (int {0} = kBegin + threadIndex % 32 * {1}; {0} < kEnd; {0} += {2})",
                          depth, operand.width, 32 * operand.width));
    out_.line(fmt::format("uint32_t eachMagnitude[{}];", operand.width));
    print_group(operand, "eachMagnitude[", "] = ke_magnitude(", ");");
    print_greatest("rowMost", operand.width);
    out_.close();
    out_.close();
    out_.line(
        "rowMost = ke_join<32>(rowMost, ke_shared(), [](uint32_t a, uint32_t b) { return "
        "ke_greater(a, b); });");
    out_.line("if (threadIndex % 32 == 0) toExtents[rowIndex] = rowMost;");
    out_.close();
  }

  void print_greatest(const std::string& whole, int64_t width) {
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int eachOne = 0; eachOne < {0}; ++eachOne) {1} = ke_greater({1}, "
                    "eachMagnitude[eachOne]);",
                    width, whole));
  }

  // Neighbouring rows a thread; threads that have the same ones meet in shared memory.
  void print_extents_along_rows(const PackedOperand& operand) {
    const int64_t sharers = kPackThreads / lanes(operand);
    const std::string row = first_row(operand), &depth = axis(shape_.k_axis()).variable;
    out_.line("uint32_t* const sharedExtents = (uint32_t*)ke_shared();");
    out_.line(
        fmt::format("const int rowIndex = threadIndex % {} * {};", lanes(operand), operand.width));
    out_.line(fmt::format("const int {} = rowBlock * 128 + rowIndex;", row));
    out_.line(fmt::format("uint32_t eachMost[{}] = {{}};", operand.width));
    out_.open(fmt::format("if ({} < {})", row, operand.rows));
    out_.line(fmt::format("#pragma unroll {}", operand.width == 4 ? 4 : 8));
    out_.open(fmt::format("for (int {0} = kBegin + threadIndex / {1}; {0} < kEnd; {0} += {2})",
                          depth, lanes(operand), sharers));
    out_.line(fmt::format("float eachValue[{}];", operand.width));
    print_group(operand, "eachValue[", "] = ", ";");
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int eachOne = 0; eachOne < {}; ++eachOne) eachMost[eachOne] = "
                    "ke_greater(eachMost[eachOne], ke_magnitude(eachValue[eachOne]));",
                    operand.width));
    out_.close();
    out_.close();
    out_.line("#pragma unroll");
    out_.line(fmt::format(
        "for (int eachOne = 0; eachOne < {}; ++eachOne) sharedExtents[threadIndex / {} * 128 + "
        "rowIndex + eachOne] = eachMost[eachOne];",
        operand.width, lanes(operand)));
    out_.line("__syncthreads();");
    out_.open("if (threadIndex < 128)");
    out_.line("uint32_t rowMost = sharedExtents[threadIndex];");
    out_.line("#pragma unroll");
    out_.line(
        fmt::format("for (int eachOne = 1; eachOne < {}; ++eachOne) rowMost = ke_greater(rowMost, "
                    "sharedExtents[eachOne * 128 + threadIndex]);",
                    sharers));
    out_.line("toExtents[threadIndex] = rowMost;");
    out_.close();
  }

  // --- Tiles -------------------------------------------------------------------------------------

  void print_pack(const PackedOperand& operand) {
    if (operand.gather != nullptr) return print_gather_pack(context_, plan_, operand, out_);
    print_block(operand, "kSlice", plan_.slices);
    out_.line("float* const rowScales = (float*)ke_shared();");
    if (!plan_.exact) {
      print_scales(operand);
      if (!operand.along_rows) out_.line("__syncthreads();");
    }
    out_.line(
        fmt::format("char* const toTile = scratchRoom + INT64_C({}) + ((int64_t)tileRows * {} + "
                    "kSlice) * {};",
                    operand.tiles_at, plan_.slices, plan_.parts() * kTileBytes));
    if (operand.along_rows) print_turn(operand);
    out_.line("#pragma unroll");
    out_.open("for (int turnIndex = 0; turnIndex < 4; ++turnIndex)");
    out_.line(
        "const int rowIndex = turnIndex * 32 + threadIndex / 8, pieceIndex = threadIndex % 8;");
    if (operand.along_rows) {
      out_.line("alignas(16) float eightOfK[8];");
      out_.line("#pragma unroll");
      out_.line(
          "for (int eachOne = 0; eachOne < 8; ++eachOne) eightOfK[eachOne] = "
          "turnedRows[(pieceIndex "
          "* 8 + eachOne) * 128 + (rowIndex ^ pieceIndex * 4)];");
    } else {
      out_.line("alignas(16) float eightOfK[8] = {};");
      print_eight(operand);
    }
    const std::string piece = "toTile + ke_tile_place(rowIndex, pieceIndex)";
    if (plan_.part == ir::DType::bfloat16) {
      out_.line(fmt::format("ke_pack_bf16({}, eightOfK);", piece));
    } else if (plan_.exact) {
      out_.line(fmt::format("ke_pack_exact_f16({}, eightOfK);", piece));
    } else {
      out_.line(
          fmt::format("ke_pack_f16<{}>({}, eightOfK, rowScales[rowIndex]);", plan_.parts(), piece));
    }
    out_.close();
  }

  void print_scales(const PackedOperand& operand) {
    out_.open("if (threadIndex < 128)");
    out_.line(fmt::format(
        "const uint32_t* const fromExtents = (const uint32_t*)(scratchRoom + INT64_C({})) + "
        "(int64_t)tileRows * {} + threadIndex;",
        operand.extents_at, operand.extent_parts * kTileRows));
    out_.line("uint32_t rowMost = fromExtents[0];");
    out_.line(operand.extent_parts > 16 ? "#pragma unroll 16" : "#pragma unroll");
    out_.line(fmt::format(
        "for (int partIndex = 1; partIndex < {}; ++partIndex) rowMost = ke_greater(rowMost, "
        "fromExtents[partIndex * 128]);",
        operand.extent_parts));
    out_.line("float rowInverse;");
    out_.line("ke_scale_row(rowMost, rowScales[threadIndex], rowInverse);");
    out_.line(fmt::format(
        "if (kSlice == 0) ((float*)(scratchRoom + INT64_C({})))[(int64_t)tileRows * 128 + "
        "threadIndex] = rowInverse;",
        operand.inverses_at));
    out_.close();
  }

  // Rows next to each other to shared memory.
  void print_turn(const PackedOperand& operand) {
    const std::string row = first_row(operand), &depth = axis(shape_.k_axis()).variable;
    const int64_t turns = kTileRows * kTileDepth / (kPackThreads * operand.width);
    out_.line("float* const turnedRows = rowScales + 128;");
    out_.line("#pragma unroll 8");
    out_.open(fmt::format("for (int turnIndex = 0; turnIndex < {}; ++turnIndex)", turns));
    out_.line(fmt::format("const int placeIndex = turnIndex * {} + threadIndex;", kPackThreads));
    out_.line(
        fmt::format("const int rowIndex = placeIndex % {0} * {1}, depthIndex = placeIndex / {0};",
                    lanes(operand), operand.width));
    out_.line(fmt::format("const int {} = rowBlock * 128 + rowIndex;", row));
    out_.line(fmt::format("const int {} = kSlice * 64 + depthIndex;", depth));
    out_.line(fmt::format("alignas(16) float eachValue[{}] = {{}};", operand.width));
    out_.open(fmt::format("if ({} < {} && {} < {})", row, operand.rows, depth, shape_.k));
    print_group(operand, "eachValue[", "] = ", ";");
    out_.close();
    out_.line(fmt::format(
        "ke_copy<{}>(turnedRows + depthIndex * 128 + (rowIndex ^ depthIndex / 8 * 4), eachValue);",
        operand.width));
    out_.close();
    out_.line("__syncthreads();");
  }

  // Eight neighbours along k from memory.
  void print_eight(const PackedOperand& operand) {
    const std::string& row = axis(operand.row_axis).variable;
    const std::string depth = first_depth(operand);
    out_.line(fmt::format("const int {} = rowBlock * 128 + rowIndex;", row));
    out_.line("#pragma unroll");
    out_.open(
        fmt::format("for (int groupIndex = 0; groupIndex < {}; ++groupIndex)", 8 / operand.width));
    out_.line(fmt::format("const int {} = kSlice * 64 + pieceIndex * 8 + groupIndex * {};", depth,
                          operand.width));
    out_.open(fmt::format("if ({} < {} && {} < {})", row, operand.rows, depth, shape_.k));
    print_group(operand, fmt::format("eightOfK[groupIndex * {} + ", operand.width), "] = ", ";");
    out_.close();
    out_.close();
  }

  PrintContext& context_;
  const ContractShape& shape_;
  const TensorPlan& plan_;
  std::vector<AxisBinding> axes_;
  CodeWriter out_;
};

}  // namespace

std::string print_packing(PrintContext& context, const ContractShape& shape,
                          const TensorPlan& plan) {
  return PackPrinter(context, shape, plan).run();
}

}  // namespace ke::cuda
