// SPDX-License-Identifier: Apache-2.0
//
// The parts of a printed contraction. They share one ContractCode and append to its `out`, in this
// order. Tensor names are lower case, so every variable of a function that sees tensors has a
// capital letter: iM, iN, iK and iB0… are the canonical axes.
#pragma once

#include <algorithm>
#include <string>

#include "target/c_printer.hpp"
#include "target/x86/contract_schedule.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {

struct ContractCode {
  PrintContext& context;
  const ContractShape& shape;
  const ContractSchedule& schedule;
  ContractGrid grid;
  ArgumentBlock arguments;
  std::string element;                 // "float"
  std::string vector;                  // "f32x8"
  bool finishes_in_registers = false;  // a light epilogue after a single block of k
  target::CodeWriter out{};

  int64_t lanes() const { return schedule.lanes; }
  // Whole vectors of the right operand lie in memory as panels hold them.
  bool packs_b_by_rows() const {
    return schedule.pack_b != Packing::none && shape.b.strided && shape.b.strided->row == 1;
  }
  int64_t pack_columns() const {  // of one packing task
    const int64_t wide = std::max<int64_t>(1024 / schedule.tile_n, 1) * schedule.tile_n;
    return packs_b_by_rows() ? wide : schedule.tile_n;
  }
  std::string scratch() const { return context.kernel.name + "_scratch"; }
  // Opens `head {` and declares the pointers of these tensors (and of scratch) when given.
  void open_function(const std::string& head, const std::vector<ir::TensorId>& tensors,
                     bool with_scratch = false);
  void line(const std::string& text);  // broken after a comma when it is too long
  // "int64_t iB0, int64_t iB1, " and "iB0, iB1, ".
  std::string batch_parameters() const;
  std::string batch_arguments() const;
  // " + iB0 * 4096 + 12": where the batch's part of a strided operand starts.
  std::string batch_offset(const StridedOperand& operand) const;
};

void print_constants(ContractCode& code);
void print_packing(ContractCode& code);   // pack_a, pack_b
void print_epilogue(ContractCode& code);  // finish_vector, finish_element, finish_tile
void print_tiles(ContractCode& code);     // multiply_tile and what wraps it
void print_blocks(ContractCode& code);    // multiply_block, work, combine
std::string print_launch(const ContractCode& code);

// In elements of the accumulator's type; each area is a multiple of 64 bytes.
struct ContractScratch {
  int64_t packed_b = 0, partial_sums = 0;         // shared
  int64_t slot_a = 0, slot_b = 0, slot_sums = 0;  // one a thread
  int64_t slot() const { return slot_a + slot_b + slot_sums; }
};
ContractScratch scratch_of(const ContractShape& shape, const ContractSchedule& schedule);

inline constexpr int64_t kCounterBytes = 64;  // the next block to take, at the start of scratch

}  // namespace ke::x86
