// SPDX-License-Identifier: Apache-2.0
//
// How a contraction is blocked. A block of threads computes block_m x block_n sums; slices of both
// operands, block_k deep, lie in shared memory as [k][m] and [k][n]; each thread keeps tile_m x
// tile_n sums in registers and takes its operands from there in words of four.
#pragma once

#include <vector>

#include "target/contract_shape.hpp"
#include "target/cuda/cost.hpp"

namespace ke::cuda {

struct ContractSchedule {
  int64_t block_m = 64, block_n = 64, block_k = 16;
  int64_t tile_m = 4, tile_n = 4;  // multiples of four
  int64_t buffers = 2;             // slices in shared memory
  int64_t split_k = 1;

  int64_t threads() const { return (block_m / tile_m) * (block_n / tile_n); }
};

// The kernel's schedule, made consistent: a number of threads that a block may have, slices that
// fit shared memory.
ContractSchedule contract_schedule(const target::ContractShape& shape,
                                   const ir::FusedKernel& kernel, const Device& device);

Result<KernelCode> print_contract_kernel(PrintContext& context, const target::ContractShape& shape,
                                         const ContractSchedule& schedule);

}  // namespace ke::cuda
