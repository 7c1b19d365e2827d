// SPDX-License-Identifier: Apache-2.0
//
// Prints what becomes of a tile's sums: operands' scales are undone, what had no parts is computed
// again in plain arithmetic, and the epilogue follows. A warp does this row after row: a lane has
// four neighbouring columns, or four that are 32 apart.
#pragma once

#include <string>
#include <vector>

#include "target/cuda/contract_parts.hpp"
#include "target/cuda/contract_tensor.hpp"

namespace ke::cuda {

// Printed code that surrounds it declares mBegin and nBegin (of the tile), restOfBlock (its batch),
// and laneIndex. All references outlive it.
class TileFinish {
 public:
  TileFinish(PrintContext& context, const target::ContractShape& shape, const TensorPlan& plan,
             const std::vector<AxisBinding>& axes, target::CodeWriter& out);

  // What all rows of a tile share.
  void print_begin();
  // A lane's columns of a row: from where the row begins, or "rowSums" back there.
  void print_load(const std::string& to, const std::string& row_begin);
  void print_store(const std::string& row_begin);
  // Undoes the scales of "rowSums", a row of the tile whose m is declared; not where `unless`
  // holds.
  void print_unscaled(const std::string& row_in_tile, const std::string& unless = "");
  // Then replaces what has no parts.
  void print_plain_sums();
  // The epilogue of unscaled "rowSums".
  void print_outputs();

 private:
  bool stores_quads() const;
  std::string inverse_of(const PackedOperand& operand, const std::string& row);
  void print_inverses();
  std::string column(const std::string& at) const;
  void print_single_columns();

  PrintContext& context_;
  const target::ContractShape& shape_;
  const TensorPlan& plan_;
  const std::vector<AxisBinding>& axes_;
  target::CodeWriter& out_;
  bool quads_;
};

}  // namespace ke::cuda
