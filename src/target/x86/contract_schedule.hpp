// SPDX-License-Identifier: Apache-2.0
//
// The schedule of a contraction: blocking after Goto and van de Geijn ("Anatomy of High-Performance
// Matrix Multiplication", 2008). A register tile of tile_m x tile_n sums is kept over a depth of
// block_k; blocks of block_m x block_n are the units that threads take; operands may be copied
// ("packed") into the order in which the tile walks them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "domain/machine.hpp"
#include "target/contract_shape.hpp"
#include "target/target.hpp"

namespace ke::x86 {

using target::ceil_div;
using target::contract_shape;
using target::ContractShape;
using target::Operand;
using target::round_up;
using target::StridedOperand;

enum class Packing : uint8_t {
  none,   // read where it is
  block,  // copied by the thread that needs it, block by block
  whole,  // all of it copied first, by all threads (right operand only)
};

struct ContractSchedule {
  int64_t lanes = 8;                                    // elements a vector
  int64_t tile_m = 6, tile_n = 16;                      // tile_n is a multiple of lanes
  int64_t block_m = 144, block_n = 512, block_k = 256;  // multiples of the tile, or the extent
  Packing pack_a = Packing::block, pack_b = Packing::whole;
  int64_t threads = 1;
  int64_t split_k = 1;     // parts of k that are summed apart and combined
  int64_t unroll = 4;      // steps of k
  bool prefetch = false;   // of the next block of k while this one is packed
  bool streaming = false;  // non-temporal stores of the outputs

  int64_t vectors() const { return tile_n / lanes; }
};

// How the choices cut the problem up.
struct ContractGrid {
  int64_t blocks_m = 1, blocks_n = 1, blocks_k = 1,
          blocks = 1;    // blocks: of all batches and splits
  int64_t panels_n = 1;  // tile_n wide panels of n
  int64_t k_blocks_a_split = 1;
  bool keeps_sums = false;  // sums outlive one block of k, or are combined
  int64_t tiles_a_block = 1;
};
ContractGrid grid_of(const ContractShape& shape, const ContractSchedule& schedule);

// Facts about a kernel that only the program knows.
struct ContractTraffic {
  int64_t input_bytes = 0, output_bytes = 0;  // each tensor once
  int64_t epilogue_operations = 0;            // an element; functions count as many
  bool streamable = false;                    // every store is a full aligned vector
};
ContractTraffic traffic_of(const ir::Program& program, const ir::FusedKernel& kernel,
                           const ContractShape& shape, int64_t vector_bytes);

std::vector<ScheduleChoice> contract_choices(const ContractShape& shape,
                                             const ContractTraffic& traffic,
                                             const MachineProfile& machine);

// The kernel's schedule, made consistent: a tile that fits the registers, packing where the
// operand cannot be read in place, blocks of whole tiles.
ContractSchedule contract_schedule(const ContractShape& shape, const ir::FusedKernel& kernel,
                                   std::span<const ScheduleChoice> choices,
                                   const ContractTraffic& traffic, const MachineProfile& machine);

double contract_estimate_ns(const ContractShape& shape, const ContractSchedule& schedule,
                            const ContractTraffic& traffic, const MachineProfile& machine);

}  // namespace ke::x86
