// SPDX-License-Identifier: Apache-2.0
//
// What the tensor-core family decides before anything is printed, and what it costs.
#include "target/cuda/contract_tensor.hpp"

#include <algorithm>

#include "target/cuda/contract_parts.hpp"

namespace ke::cuda {
namespace {

using ir::DType;
using ir::Expr;
using target::ceil_div;
using target::ContractShape;
using target::Operand;
using target::round_up;

constexpr int64_t kScratchMax = int64_t{8} << 30;
constexpr int64_t kExtentPartsUsual = 16, kExtentPartsMax = 64, kExtentDepthMax = 512;
constexpr int64_t kTileAlignment = 1024;
// Sums that wait to be stored, with a pitch that keeps banks apart (contract_tensor_print.cpp).
constexpr int64_t kSumsBytes = kTileRows * 136 * 4;

// How many neighbours in memory one load meets along an axis: the axis itself, or axis % E.
int64_t run_along(const ir::Tensor& tensor, const Expr& load, int axis, int64_t extent) {
  int64_t run = 1;
  for (const target::Address::Term& term : target::address_of(tensor, load.operands).terms) {
    const Expr& factor = *term.factor;
    if (term.coefficient != 1 || !target::depends_on_axis(factor, axis)) continue;
    if (factor.kind == Expr::Kind::axis) run = std::max(run, extent);
    const bool is_rest = factor.kind == Expr::Kind::binary && factor.binary == ir::BinaryOp::mod &&
                         factor.operands[0]->kind == Expr::Kind::axis &&
                         factor.operands[1]->kind == Expr::Kind::constant;
    if (is_rest) run = std::max(run, factor.operands[1]->int_value);
  }
  return run;
}

PackedOperand packed(const ir::Program& program, const ContractShape& shape, const Operand& operand,
                     bool left) {
  PackedOperand result{.operand = &operand, .name = left ? "A" : "B"};
  result.row_axis = left ? shape.m_axis() : shape.n_axis();
  result.rows = left ? shape.m : shape.n;
  result.row_blocks = ceil_div(result.rows, kTileRows);
  int64_t along_rows = 1, along_k = 1;
  walk(operand.value, [&](const Expr& expr) {
    if (expr.kind != Expr::Kind::load) return;
    const ir::Tensor& tensor = program.tensor(expr.tensor);
    along_rows = std::max(along_rows, run_along(tensor, expr, result.row_axis, result.rows));
    along_k = std::max(along_k, run_along(tensor, expr, shape.k_axis(), shape.k));
  });
  result.along_rows = along_rows > along_k;
  const int lane_axis = result.along_rows ? result.row_axis : shape.k_axis();
  const int64_t extent = result.along_rows ? result.rows : shape.k;
  result.width = widest_load(program, operand.value, lane_axis);
  while (extent % result.width != 0) result.width /= 2;
  return result;
}

// A gathered operand's extents are found in pieces of every image.
void divide_images(PackedOperand& operand) {
  constexpr int64_t kPart = 8192, kParts = 256;
  const int64_t elements = operand.gather->pixels * operand.gather->channels;
  operand.extent_depth = round_up(std::max(ceil_div(elements, kParts), kPart), kPackThreads * 8);
  operand.extent_parts = std::max<int64_t>(1, ceil_div(elements, operand.extent_depth));
}

// Enough blocks to keep the device busy, few enough parts to join again.
void divide_extents(PackedOperand& operand, const TensorPlan& plan, int64_t k,
                    const Device& device) {
  int64_t depth = kExtentDepthMax;
  const auto blocks = [&] { return plan.batches * operand.row_blocks * ceil_div(k, depth); };
  while (depth > kTileDepth && blocks() < 2 * device.multiprocessors) depth /= 2;
  // Few rows of great length have more parts: joining them is less than idling.
  const int64_t parts = std::clamp(device.multiprocessors / (plan.batches * operand.row_blocks),
                                   kExtentPartsUsual, kExtentPartsMax);
  operand.extent_depth = round_up(std::max({depth, ceil_div(k, parts), kTileDepth}), kTileDepth);
  operand.extent_parts = std::max<int64_t>(1, ceil_div(k, operand.extent_depth));
}

}  // namespace

bool has_exact_parts(const ContractShape& shape) {
  const DType type = half_type(*shape.a.value);
  return (type == DType::float16 || type == DType::bfloat16) && half_type(*shape.b.value) == type;
}

bool can_use_tensor_cores(const ir::Program& program, const TensorShape& tensor,
                          const Device& device) {
  const ContractShape& shape = tensor.shape;
  if (!device.has_warpgroup_products || shape.is_empty() || shape.k == 0) return false;
  return shape.dtype == DType::float32 &&
         tensor_plan(program, tensor, {}, device).scratch_bytes <= kScratchMax;
}

std::vector<int64_t> tensor_splits(const ContractShape& shape, const Device& device) {
  constexpr int64_t kPartSlicesMin = 4, kSplitMax = 64, kRounds = 4;
  const int64_t slices = ceil_div(shape.k, kTileDepth);
  const int64_t tiles =
      shape.batches() * ceil_div(shape.m, kTileRows) * ceil_div(shape.n, kTileRows);
  const int64_t most = std::min({kSplitMax, slices / kPartSlicesMin,
                                 kRounds * device.multiprocessors / std::max<int64_t>(tiles, 1)});
  std::vector<int64_t> splits{1};
  for (int64_t power = 2; power <= most; power *= 2) {
    splits.push_back(power);
    if (power + power / 2 <= most) splits.push_back(power + power / 2);
  }
  return splits;
}

int64_t PackedOperand::block_channels() const {
  int64_t channels = kTileDepth;
  while (channels / 2 >= gather->padded_channels) channels /= 2;
  return channels;
}

namespace {

// Where an operand's parts, extents and inverse scales lie in scratch.
template <class Take>
void place_operand(PackedOperand& operand, const TensorPlan& plan, int64_t k, const Device& device,
                   const Take& take) {
  const Gather* gather = operand.gather;
  if (!operand.is_packed()) return;
  const int64_t blocks = plan.batches * operand.row_blocks;
  operand.packed_bytes =
      plan.parts() * (gather ? gather->packed_elements() * 2 : blocks * plan.slices * kTileBytes);
  operand.tiles_at = take(operand.packed_bytes);
  if (plan.exact) return;
  if (gather != nullptr) {
    divide_images(operand);
    operand.inverses_at = take(gather->images * 4);
    operand.extents_at = take(gather->images * operand.extent_parts * 4);
    return;
  }
  divide_extents(operand, plan, k, device);
  operand.inverses_at = take(blocks * kTileRows * 4);
  operand.extents_at = take(blocks * operand.extent_parts * kTileRows * 4);
}

// How threads load what is to be gathered.
void choose_loads(PackedOperand& operand, const ir::Program& program) {
  const Gather& gather = *operand.gather;
  operand.along_rows = !gather.along_channels;
  const int lane_axis = operand.along_rows ? 1 : 2;
  const int64_t extent = operand.along_rows ? gather.pixels : gather.channels;
  operand.width = widest_load(program, gather.packed, lane_axis);
  while (extent % operand.width != 0) operand.width /= 2;
}

// Parts of as many slices as the tensor core's sums are added up after.
void split_slices(TensorPlan& plan, int64_t wanted) {
  plan.part_slices = round_up(ceil_div(plan.slices, wanted), wanted > 1 ? plan.add_every : 1);
  plan.split_k = ceil_div(plan.slices, plan.part_slices);
}

}  // namespace

TensorPlan tensor_plan(const ir::Program& program, const TensorShape& tensor,
                       const TensorSchedule& schedule, const Device& device) {
  const ContractShape& shape = tensor.shape;
  TensorPlan plan;
  plan.exact = has_exact_parts(shape);
  plan.terms = plan.exact ? 1 : schedule.terms;
  if (plan.exact) plan.part = half_type(*shape.a.value);
  plan.batches = shape.batches();
  plan.tiles_m = ceil_div(shape.m, kTileRows);
  plan.tiles_n = ceil_div(shape.n, kTileRows);
  plan.slices = ceil_div(shape.k, kTileDepth);
  plan.add_every = plan.terms == 3 ? 1 : 4;
  split_slices(plan, schedule.split_k);
  plan.stages = std::min<int64_t>(plan.terms == 3 ? 3 : 6, plan.part_slices);
  const int64_t barriers = 8 * (2 * plan.stages + 1);
  plan.shared_bytes =
      1024 + std::max(plan.stages * plan.stage_bytes(), kSumsBytes) + round_up(barriers, 16);
  plan.operands = {packed(program, shape, shape.a, true), packed(program, shape, shape.b, false)};
  const auto take = [&](int64_t bytes) {
    const int64_t at = plan.scratch_bytes;
    plan.scratch_bytes += round_up(bytes, kTileAlignment);
    return at;
  };
  for (size_t i = 0; i < plan.operands.size(); ++i) {
    if (tensor.gathers[i]) {
      plan.operands[i].gather = &*tensor.gathers[i];
      choose_loads(plan.operands[i], program);
    }
    place_operand(plan.operands[i], plan, shape.k, device, take);
  }
  if (plan.splits()) {
    plan.sums_at = take(plan.split_k * plan.tiles() * kTileRows * kTileRows * 4);
  }
  return plan;
}

double tensor_ns(const TensorPlan& plan, const KernelWork& work, const Device& device) {
  // One H200, as measured: a slice of 64 takes a tile's block 1.13 us with three terms and 0.54 us
  // with one; what comes before and after a tile's slices, 4 us.
  constexpr double kSliceNs3 = 1130, kSliceNs1 = 540, kTileNs = 4000;
  const double slice = plan.terms == 3 ? kSliceNs3 : kSliceNs1;
  const auto blocks = static_cast<double>(plan.tiles() * plan.split_k);
  const double full = blocks / static_cast<double>(device.multiprocessors);
  const double rounds = std::max(1.0, full + (plan.splits() && full <= 1 ? 0.0 : 0.2));
  double packed = 0;
  for (const PackedOperand& operand : plan.operands) {
    packed += static_cast<double>(operand.packed_bytes);
  }
  // However k is split, parts come from memory once.
  const double product =
      std::max(rounds * (kTileNs + static_cast<double>(plan.part_slices) * slice),
               packed / device.read_bandwidth * 1e9);
  const double sums =
      plan.splits() ? blocks * 2 * kTileRows * kTileRows * 4 / device.bandwidth * 1e9 : 0;
  const double launches = (plan.exact ? 2 : 3) + (plan.splits() ? 1 : 0);
  const double moved = packed + work.read * (plan.exact ? 1 : 2);
  const double stored = std::max(0.0, work.written / device.bandwidth * 1e9 - product / 2);
  return product + sums + stored + 1.3 * moved / device.bandwidth * 1e9 +
         launches * device.launch_ns;
}

int64_t extents_blocks(const TensorPlan& plan, const PackedOperand& operand) {
  if (operand.gather != nullptr) return operand.gather->images * operand.extent_parts;
  return plan.batches * operand.row_blocks * operand.extent_parts;
}

int64_t pack_blocks(const TensorPlan& plan, const PackedOperand& operand) {
  if (!operand.is_packed()) return 0;
  if (operand.gather == nullptr) return plan.batches * operand.row_blocks * plan.slices;
  return operand.gather->images * ceil_div(operand.gather->pixels, operand.block_pixels()) *
         ceil_div(operand.gather->padded_channels, operand.block_channels());
}

int64_t extents_shared_bytes(const TensorPlan& plan) {
  int64_t bytes = 0;
  for (const PackedOperand& operand : plan.operands) {
    if (operand.gather != nullptr) {
      bytes = std::max(bytes, kPackThreads / 32 * 4);
    } else if (operand.along_rows) {
      bytes = std::max(bytes, 2 * operand.width * kTileRows * 4);
    }
  }
  return bytes;
}

int64_t pack_shared_bytes(const TensorPlan& plan) {
  bool turns = false;
  for (const PackedOperand& operand : plan.operands) {
    turns = turns || (operand.is_packed() && operand.along_rows);
  }
  return kTileRows * 4 + (turns ? kTileRows * kTileDepth * 4 : 0);
}

}  // namespace ke::cuda
