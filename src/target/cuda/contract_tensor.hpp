// SPDX-License-Identifier: Apache-2.0
//
// Contractions on Hopper's tensor cores, as up to four launches:
//
//   extents  what magnitudes each row of both operands has (fp32 operands only);
//   pack     computes the operands (prologues, gathers), scales their rows by powers of two, splits
//            them into fp16 parts, and lays these out as tiles of 128 rows x 64 of k in scratch;
//   product  one warp copies tiles to shared memory while two warpgroups multiply them: with three
//            terms, high * high + (high * low + low * high) / 2048. The tensor core truncates when
//            it adds, so its sums are added up outside of it every few slices of k. What has no
//            such parts (not finite, or too wide a range) is NaN in them and so in the sums it
//            belongs to, which are computed again in plain arithmetic. Mostly there are none;
//   combine  where k is split over blocks of the product: adds up their sums, always in the same
//            order, and does what the product would have done with them.
//
// 16-bit operands are their own only part: they need no scales and lack no parts, nor packing where
// they can be gathered from where they lie. Here "rows" are those of either operand: m of the left
// one, n of the right one.
#pragma once

#include <array>

#include "target/cuda/contract_gather.hpp"
#include "target/cuda/cost.hpp"

namespace ke::cuda {

// What a tile is, to device.h.
constexpr int64_t kTileRows = 128, kTileDepth = 64, kTileBytes = kTileRows * kTileDepth * 2;
constexpr int64_t kPackThreads = 256;

// One operand's way to its tiles.
struct PackedOperand {
  const target::Operand* operand = nullptr;
  const Gather* gather = nullptr;  // in place of tiles
  std::string name;                // "A", "B"
  int row_axis = 0;                // canonical axis of its rows: m or n
  int64_t rows = 0, row_blocks = 0;
  bool along_rows = false;  // neighbouring threads load neighbouring rows, not neighbours along k
  int64_t width = 1;        // neighbours loaded at once
  int64_t extent_parts = 1, extent_depth = 0;  // parts of k whose extents are found apart
  int64_t tiles_at = 0, inverses_at = 0, extents_at = 0;  // in scratch
  int64_t packed_bytes = 0;                               // of all parts

  bool is_packed() const { return gather == nullptr || !gather->in_place; }
  // Rows and channels of a block that packs what is to be gathered.
  int64_t block_channels() const;
  int64_t block_pixels() const { return kTileRows * kTileDepth / block_channels(); }
};

struct TensorPlan {
  int64_t terms = 3;
  bool exact = false;  // 16-bit operands
  ir::DType part = ir::DType::float16;
  int64_t batches = 1, tiles_m = 1, tiles_n = 1, slices = 1;
  int64_t stages = 1;     // slices of both operands in shared memory
  int64_t add_every = 1;  // slices, after which the tensor core's sums are added up
  int64_t split_k = 1;    // parts of k, of so many slices each, that are summed apart
  int64_t part_slices = 1;
  int64_t sums_at = 0;       // of the parts, in scratch
  int64_t shared_bytes = 0;  // of the product
  int64_t scratch_bytes = 0;
  std::array<PackedOperand, 2> operands;

  int64_t parts() const { return terms == 3 ? 2 : 1; }
  int64_t tiles() const { return batches * tiles_m * tiles_n; }
  bool splits() const { return split_k > 1; }
  int64_t stage_bytes() const { return 2 * parts() * kTileBytes; }
  bool gathers() const { return operands[0].gather != nullptr || operands[1].gather != nullptr; }
  bool packs() const { return operands[0].is_packed() || operands[1].is_packed(); }
  // Slices that are on their way before the first of them must be there.
  int64_t slices_ahead() const { return stages / 2; }
};

// Whether this family can be printed: fp32 sums, enough scratch.
bool can_use_tensor_cores(const ir::Program& program, const TensorShape& tensor,
                          const Device& device);
// Whether both operands are of one 16-bit type, and so need no parts.
bool has_exact_parts(const target::ContractShape& shape);

// What a schedule decides of it.
struct TensorSchedule {
  int64_t terms = 3;
  int64_t split_k = 1;
};
// Points into the shape. Parts of k that would be empty are left out.
TensorPlan tensor_plan(const ir::Program& program, const TensorShape& tensor,
                       const TensorSchedule& schedule, const Device& device);
// How often k may be split, ascending from 1: as long as blocks have some slices each, and there
// are not many more of them than the device has room for.
std::vector<int64_t> tensor_splits(const target::ContractShape& shape, const Device& device);
double tensor_ns(const TensorPlan& plan, const KernelWork& work, const Device& device);

Result<KernelCode> print_tensor_kernel(PrintContext& context, const target::ContractShape& shape,
                                       const TensorPlan& plan);
// The launches before the product, as functions at file scope.
std::string print_packing(PrintContext& context, const target::ContractShape& shape,
                          const TensorPlan& plan);
void print_gather_extents(PrintContext& context, const TensorPlan& plan,
                          const PackedOperand& operand, target::CodeWriter& out);
void print_gather_pack(PrintContext& context, const TensorPlan& plan, const PackedOperand& operand,
                       target::CodeWriter& out);
int64_t extents_blocks(const TensorPlan& plan, const PackedOperand& operand);
int64_t pack_blocks(const TensorPlan& plan, const PackedOperand& operand);
int64_t extents_shared_bytes(const TensorPlan& plan);
int64_t pack_shared_bytes(const TensorPlan& plan);

}  // namespace ke::cuda
