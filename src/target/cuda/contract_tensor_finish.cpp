// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/contract_tensor_finish.hpp"

#include <fmt/format.h>

namespace ke::cuda {

using target::CodeWriter;
using target::ContractShape;

TileFinish::TileFinish(PrintContext& context, const ContractShape& shape, const TensorPlan& plan,
                       const std::vector<AxisBinding>& axes, CodeWriter& out)
    : context_(context),
      shape_(shape),
      plan_(plan),
      axes_(axes),
      out_(out),
      quads_(stores_quads()) {}

// Whether everything written is contiguous along n, four at a time.
bool TileFinish::stores_quads() const {
  if (shape_.n % 4 != 0) return false;
  for (const ir::FusedStage& stage : shape_.stages) {
    if (is_written(context_, stage.output) &&
        !is_wide(context_.tensor(stage.output), stage.store, shape_.n_axis(), 4)) {
      return false;
    }
  }
  return true;
}

// Where the block's rows of an operand are among all: "inverseA" points at its first inverse, or at
// those of all images.
void TileFinish::print_inverses() {
  for (const PackedOperand& operand : plan_.operands) {
    const std::string begin =
        fmt::format("const float* const inverse{} = (const float*)(scratchRoom + INT64_C({}))",
                    operand.name, operand.inverses_at);
    out_.line(operand.gather != nullptr
                  ? begin + ";"
                  : fmt::format("{} + ((int64_t)restOfBlock * {} + {}) * 128;", begin,
                                operand.row_blocks, operand.name == "A" ? "tileM" : "tileN"));
  }
}

// The inverse scale of a row of the block's tile.
std::string TileFinish::inverse_of(const PackedOperand& operand, const std::string& row) {
  if (operand.gather == nullptr) return fmt::format("inverse{}[{}]", operand.name, row);
  std::vector<AxisBinding> axes = axes_;
  std::string& variable = axes[static_cast<size_t>(operand.row_axis)].variable;
  variable = context_.fresh("rowAt");
  out_.line(
      fmt::format("const int {} = {}Begin + {};", variable, operand.name == "A" ? "m" : "n", row));
  ScalarPrinter printer(context_, out_, axes);
  const std::string inverse =
      fmt::format("inverse{}[{}]", operand.name, printer.print(operand.gather->image).text);
  if (operand.rows % kTileRows == 0) return inverse;
  return fmt::format("({} < {} ? {} : 1.0f)", variable, operand.rows, inverse);
}

std::string TileFinish::column(const std::string& at) const {
  return quads_ ? fmt::format("laneIndex * 4 + {}", at) : fmt::format("{} * 32 + laneIndex", at);
}

void TileFinish::print_begin() {
  if (plan_.exact) return;
  print_inverses();
  out_.line("float columnInverses[4];");
  out_.line("#pragma unroll");
  out_.open("for (int eachOne = 0; eachOne < 4; ++eachOne)");
  const std::string inverse = inverse_of(plan_.operands[1], column("eachOne"));
  out_.line(fmt::format("columnInverses[eachOne] = {};", inverse));
  out_.close();
}

void TileFinish::print_load(const std::string& to, const std::string& row_begin) {
  if (quads_) {
    out_.line(fmt::format("ke_copy<4>({}, {} + laneIndex * 4);", to, row_begin));
    return;
  }
  out_.line("#pragma unroll");
  out_.line(fmt::format("for (int eachOne = 0; eachOne < 4; ++eachOne) {}[eachOne] = ({})[{}];", to,
                        row_begin, column("eachOne")));
}

void TileFinish::print_store(const std::string& row_begin) {
  if (quads_) {
    out_.line(fmt::format("ke_copy<4>({} + laneIndex * 4, rowSums);", row_begin));
    return;
  }
  out_.line("#pragma unroll");
  out_.line(
      fmt::format("for (int eachOne = 0; eachOne < 4; ++eachOne) ({})[{}] = rowSums[eachOne];",
                  row_begin, column("eachOne")));
}

void TileFinish::print_unscaled(const std::string& row_in_tile, const std::string& unless) {
  const std::string inverse = inverse_of(plan_.operands[0], row_in_tile);
  out_.line(unless.empty()
                ? fmt::format("const float rowInverse = {};", inverse)
                : fmt::format("const float rowInverse = {} ? 1.0f : {};", unless, inverse));
  out_.line("#pragma unroll");
  out_.line(
      "for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] * "
      "rowInverse * columnInverses[eachOne];");
}

void TileFinish::print_outputs() {
  if (!quads_) return print_single_columns();
  const AxisBinding& n = axes_[static_cast<size_t>(shape_.n_axis())];
  const std::string first = ElementLoop::first_variable(n, 4);
  out_.line(fmt::format("const int {} = nBegin + laneIndex * 4;", first));
  const bool edge = shape_.n % kTileRows != 0;
  if (edge) out_.open(fmt::format("if ({} < {})", first, shape_.n));
  print_epilogue(context_, out_, shape_, axes_,
                 {fmt::format("rowSums[{} - {}]", n.variable, first), 4});
  if (edge) out_.close();
}

// Scales of finite sums are finite, so a sum that is not a number has met something without parts.
// Sums of 64 terms are added up: they may be long.
void TileFinish::print_plain_sums() {
  const std::string& n = axes_[static_cast<size_t>(shape_.n_axis())].variable;
  const std::string& k = axes_[static_cast<size_t>(shape_.k_axis())].variable;
  out_.line("const float sumOfFour = rowSums[0] + rowSums[1] + rowSums[2] + rowSums[3];");
  out_.open("if (sumOfFour != sumOfFour)");
  out_.line("float plainSums[4] = {};");
  out_.line("#pragma unroll 1");
  out_.open(fmt::format("for (int kBegin = 0; kBegin < {}; kBegin += 64)", shape_.k));
  out_.line("float partSums[4] = {};");
  out_.line(fmt::format("const int kEnd = kBegin + 64 < {0} ? kBegin + 64 : {0};", shape_.k));
  out_.line("#pragma unroll 1");
  out_.open(fmt::format("for (int {0} = kBegin; {0} < kEnd; ++{0})", k));
  ScalarPrinter element(context_, out_, axes_);
  out_.line(fmt::format("const float leftFactor = {};", element.print(shape_.a.value).text));
  out_.line("#pragma unroll");
  out_.open("for (int eachOne = 0; eachOne < 4; ++eachOne)");
  const bool edge = shape_.n % kTileRows != 0;
  out_.line(fmt::format("const int columnAt = nBegin + {};", column("eachOne")));
  out_.line(edge ? fmt::format("const int {0} = columnAt < {1} ? columnAt : {1} - 1;", n, shape_.n)
                 : fmt::format("const int {} = columnAt;", n));
  ScalarPrinter right(context_, out_, axes_);
  out_.line(fmt::format("partSums[eachOne] += leftFactor * {};", right.print(shape_.b.value).text));
  out_.close();
  out_.close();
  out_.line("#pragma unroll");
  out_.line(
      "for (int eachOne = 0; eachOne < 4; ++eachOne) plainSums[eachOne] += partSums[eachOne];");
  out_.close();
  out_.line("#pragma unroll");
  out_.line(
      "for (int eachOne = 0; eachOne < 4; ++eachOne) rowSums[eachOne] = rowSums[eachOne] != "
      "rowSums[eachOne] ? plainSums[eachOne] : rowSums[eachOne];");
  out_.close();
}

void TileFinish::print_single_columns() {
  const std::string& n = axes_[static_cast<size_t>(shape_.n_axis())].variable;
  out_.line("#pragma unroll");
  out_.open("for (int eachOne = 0; eachOne < 4; ++eachOne)");
  out_.line(fmt::format("const int {} = nBegin + eachOne * 32 + laneIndex;", n));
  out_.open(fmt::format("if ({} < {})", n, shape_.n));
  print_epilogue(context_, out_, shape_, axes_, {"rowSums[eachOne]", 1});
  out_.close();
  out_.close();
}

}  // namespace ke::cuda
