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
constexpr int64_t kExtentPartsMax = 16, kExtentDepthMax = 512;
constexpr int64_t kTileAlignment = 1024;
// Sums that wait to be stored, with a pitch that keeps banks apart (contract_tensor_print.cpp).
constexpr int64_t kSumsBytes = kTileRows * 136 * 4;

// The 16-bit type that holds every value of an operand, or another type.
DType half_type(const Expr& value) {
  if (value.kind == Expr::Kind::cast) return value.operands[0]->dtype;
  const auto is_zero = [](const Expr& side) {
    return side.kind == Expr::Kind::constant && side.float_value == 0;
  };
  if (value.kind != Expr::Kind::select) return value.dtype;  // padding chooses zero
  if (is_zero(*value.operands[2])) return half_type(*value.operands[1]);
  return is_zero(*value.operands[1]) ? half_type(*value.operands[2]) : value.dtype;
}

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

// Enough blocks to keep the device busy, few enough parts to join again.
void divide_extents(PackedOperand& operand, const TensorPlan& plan, int64_t k,
                    const Device& device) {
  int64_t depth = kExtentDepthMax;
  const auto blocks = [&] { return plan.batches * operand.row_blocks * ceil_div(k, depth); };
  while (depth > kTileDepth && blocks() < 2 * device.multiprocessors) depth /= 2;
  operand.extent_depth =
      round_up(std::max({depth, ceil_div(k, kExtentPartsMax), kTileDepth}), kTileDepth);
  operand.extent_parts = std::max<int64_t>(1, ceil_div(k, operand.extent_depth));
}

}  // namespace

bool has_exact_parts(const ContractShape& shape) {
  const DType type = half_type(*shape.a.value);
  return (type == DType::float16 || type == DType::bfloat16) && half_type(*shape.b.value) == type;
}

bool can_use_tensor_cores(const ir::Program& program, const ContractShape& shape,
                          const Device& device) {
  if (!device.has_warpgroup_products || shape.is_empty() || shape.k == 0) return false;
  return shape.dtype == DType::float32 &&
         tensor_plan(program, shape, 3, device).scratch_bytes <= kScratchMax;
}

TensorPlan tensor_plan(const ir::Program& program, const ContractShape& shape, int64_t terms,
                       const Device& device) {
  TensorPlan plan;
  plan.exact = has_exact_parts(shape);
  plan.terms = plan.exact ? 1 : terms;
  if (plan.exact) plan.part = half_type(*shape.a.value);
  plan.batches = shape.batches();
  plan.tiles_m = ceil_div(shape.m, kTileRows);
  plan.tiles_n = ceil_div(shape.n, kTileRows);
  plan.slices = ceil_div(shape.k, kTileDepth);
  plan.stages = std::min<int64_t>(plan.terms == 3 ? 3 : 6, plan.slices);
  plan.add_every = plan.terms == 3 ? 1 : 4;
  const int64_t barriers = 8 * (2 * plan.stages + 1);
  plan.shared_bytes =
      1024 + std::max(plan.stages * plan.stage_bytes(), kSumsBytes) + round_up(barriers, 16);
  plan.operands = {packed(program, shape, shape.a, true), packed(program, shape, shape.b, false)};
  const auto take = [&](int64_t bytes) {
    const int64_t at = plan.scratch_bytes;
    plan.scratch_bytes += round_up(bytes, kTileAlignment);
    return at;
  };
  for (PackedOperand& operand : plan.operands) {
    const int64_t blocks = plan.batches * operand.row_blocks;
    operand.tiles_at = take(blocks * plan.slices * plan.parts() * kTileBytes);
    if (plan.exact) continue;
    divide_extents(operand, plan, shape.k, device);
    operand.inverses_at = take(blocks * kTileRows * 4);
    operand.extents_at = take(blocks * operand.extent_parts * kTileRows * 8);
  }
  return plan;
}

double tensor_ns(const TensorPlan& plan, const KernelWork& work, const Device& device) {
  // One H200, as measured: a slice of 64 takes a tile's block 1.13 us with three terms and 0.54 us
  // with one; what comes before and after a tile's slices, 4 us.
  constexpr double kSliceNs3 = 1130, kSliceNs1 = 540, kTileNs = 4000;
  const double slice = plan.terms == 3 ? kSliceNs3 : kSliceNs1;
  const auto tiles = static_cast<double>(plan.tiles());
  const double rounds = std::max(1.0, tiles / static_cast<double>(device.multiprocessors) + 0.2);
  const double product = rounds * (kTileNs + static_cast<double>(plan.slices) * slice);
  double packed = 0;
  for (const PackedOperand& operand : plan.operands) {
    packed += static_cast<double>(plan.batches * operand.row_blocks * plan.slices * plan.parts() *
                                  kTileBytes);
  }
  const double launches = plan.exact ? 2 : 4;
  const double moved = packed + work.read * (plan.exact ? 1 : 2);
  const double stored = std::max(0.0, work.written / device.bandwidth * 1e9 - product / 2);
  return product + stored + 1.3 * moved / device.bandwidth * 1e9 + launches * device.launch_ns;
}

int64_t extents_blocks(const TensorPlan& plan, const PackedOperand& operand) {
  return plan.batches * operand.row_blocks * operand.extent_parts;
}

int64_t pack_blocks(const TensorPlan& plan, const PackedOperand& operand) {
  return plan.batches * operand.row_blocks * plan.slices;
}

int64_t extents_shared_bytes(const TensorPlan& plan) {
  int64_t bytes = 0;
  for (const PackedOperand& operand : plan.operands) {
    if (operand.along_rows) bytes = std::max(bytes, 2 * operand.width * kTileRows * 8);
  }
  return bytes;
}

int64_t pack_shared_bytes(const TensorPlan& plan) {
  const bool turns = plan.operands[0].along_rows || plan.operands[1].along_rows;
  return kTileRows * 4 + (turns ? kTileRows * kTileDepth * 4 : 0);
}

}  // namespace ke::cuda
