// SPDX-License-Identifier: Apache-2.0
//
// The contract skeleton: choices and cost of its two families. contract_print.cpp prints the one
// for any device, contract_tensor_print.cpp the one for tensor cores.
#include "target/cuda/contract.hpp"

#include <algorithm>

#include "target/access.hpp"
#include "target/cuda/contract_tensor.hpp"

namespace ke::cuda {
namespace {

using ir::FusedKernel;
using ir::Program;
using target::ceil_div;
using target::ContractShape;

constexpr int64_t kThreadsMin = 32, kThreadsMax = 512;
constexpr int64_t kPadding = 4;

int64_t blocks_of(const ContractShape& shape, int64_t block_m, int64_t block_n) {
  return shape.batches() * ceil_div(shape.m, block_m) * ceil_div(shape.n, block_n);
}

// The largest of 128, 64, 32, 16 that the extent does not leave mostly empty.
int64_t block_for(int64_t extent) {
  int64_t block = 128;
  while (block > 16 && extent <= block / 2) block /= 2;
  return block;
}

int64_t power_at_most(int64_t value) {
  int64_t power = 1;
  while (power * 2 <= value) power *= 2;
  return power;
}

int64_t preferred_split(const ContractShape& shape, int64_t blocks, const Device& device) {
  const int64_t wanted = device.multiprocessors / std::max<int64_t>(blocks, 1);
  return power_at_most(std::clamp<int64_t>(std::min(wanted, shape.k / 256), 1, 64));
}

int64_t shared_bytes(const ContractSchedule& schedule, int64_t element_bytes) {
  return schedule.buffers * schedule.block_k *
         (schedule.block_m + schedule.block_n + 2 * kPadding) * element_bytes;
}

std::vector<ScheduleChoice> tiled_choices(const ContractShape& shape, const FusedKernel& kernel,
                                          const Device& device) {
  if (shape.is_empty()) return {};
  int64_t block_m = block_for(shape.m), block_n = block_for(shape.n);
  // Smaller tiles as long as multiprocessors would stay idle and the operands are still shared.
  while (blocks_of(shape, block_m, block_n) < device.multiprocessors &&
         std::max(block_m, block_n) > 64) {
    (block_m >= block_n ? block_m : block_n) /= 2;
  }
  std::vector<ScheduleChoice> choices;
  choices.push_back({"block_m", {16, 32, 64, 128}, block_m});
  choices.push_back({"block_n", {16, 32, 64, 128}, block_n});
  choices.push_back({"block_k", {8, 16, 32}, 16});
  choices.push_back({"tile_m", {4, 8}, block_m >= 128 ? 8 : 4});
  choices.push_back({"tile_n", {4, 8}, block_n >= 128 ? 8 : 4});
  choices.push_back({"stages", {1, 2}, 2});
  if (shape.k >= 512) {
    const int64_t m = target::chosen(kernel, choices, "block_m");
    const int64_t n = target::chosen(kernel, choices, "block_n");
    choices.push_back(
        powers_choice("split_k", 1, 64, preferred_split(shape, blocks_of(shape, m, n), device)));
  }
  return choices;
}

}  // namespace

ContractSchedule contract_schedule(const ContractShape& shape, const FusedKernel& kernel,
                                   const Device& device) {
  const std::vector<ScheduleChoice> choices = tiled_choices(shape, kernel, device);
  const auto value = [&](std::string_view name) { return target::chosen(kernel, choices, name); };
  ContractSchedule schedule;
  if (choices.empty()) return schedule;
  schedule.block_m = value("block_m");
  schedule.block_n = value("block_n");
  schedule.block_k = value("block_k");
  schedule.tile_m = value("tile_m");
  schedule.tile_n = value("tile_n");
  schedule.buffers = value("stages");
  if (choices.back().name == "split_k") schedule.split_k = value("split_k");
  // A block has 32 to 512 threads, whatever the choices say of each decision alone.
  while (schedule.threads() > kThreadsMax) {
    (schedule.tile_m <= schedule.tile_n ? schedule.tile_m : schedule.tile_n) *= 2;
  }
  while (schedule.threads() < kThreadsMin) {
    if (schedule.tile_m > 4 || schedule.tile_n > 4) {
      (schedule.tile_m >= schedule.tile_n ? schedule.tile_m : schedule.tile_n) = 4;
    } else {
      (schedule.block_m <= schedule.block_n ? schedule.block_m : schedule.block_n) *= 2;
    }
  }
  while (shared_bytes(schedule, bytes_of(shape.dtype)) > device.shared_bytes_max / 2) {
    schedule.block_k /= 2;
  }
  return schedule;
}

namespace {

double tiled_ns(const ContractShape& shape, const FusedKernel& kernel, const KernelWork& work,
                const Device& device) {
  const ContractSchedule schedule = contract_schedule(shape, kernel, device);
  const auto blocks =
      static_cast<double>(blocks_of(shape, schedule.block_m, schedule.block_n) * schedule.split_k);
  // Tiles past the edge compute for nothing, and the last round leaves multiprocessors idle.
  const auto padded = static_cast<double>(shape.batches() * ceil_div(shape.m, schedule.block_m) *
                                          schedule.block_m * ceil_div(shape.n, schedule.block_n) *
                                          schedule.block_n * std::max<int64_t>(shape.k, 1));
  const auto multiprocessors = static_cast<double>(device.multiprocessors);
  const double rounds = std::max(1.0, blocks / multiprocessors);
  const double idle = std::max(1.0, multiprocessors / blocks);
  const double last_round = (rounds + 0.5) / rounds;
  // Two multiply-adds a word from shared memory for each element of the tile's edge.
  const double reuse = 2.0 * static_cast<double>(schedule.tile_m * schedule.tile_n) /
                       static_cast<double>(schedule.tile_m + schedule.tile_n);
  const double share = std::min(0.85, 0.1 * reuse + 0.1);
  const double rate = device.flops_f32 * (shape.dtype == ir::DType::float64 ? 0.5 : 1.0) * share;
  const double arithmetic = 2 * padded / rate * 1e9 * idle * last_round;
  const double bytes = work.read + work.written;
  const double combine =
      schedule.split_k > 1
          ? device.launch_ns +
                8.0 * static_cast<double>(shape.batches() * shape.m * shape.n * schedule.split_k) /
                    device.bandwidth * 1e9
          : 0;
  return std::max(arithmetic, bytes / device.bandwidth * 1e9) + device.launch_ns + combine;
}

// A convolution may be as inexact as PyTorch's own, which takes TF32 by default; its products may
// not. Stages that became part of the contraction come before it in its origin.
int64_t preferred_terms(const FusedKernel& kernel) {
  const std::string_view origin = kernel.stages.front().origin;
  return origin.ends_with("aten.convolution.default") ? 1 : 3;
}

// As many blocks as the device has room for at once, where that is faster.
int64_t preferred_tensor_split(const Program& program, const TensorShape& tensor, int64_t terms,
                               const KernelWork& work, const Device& device) {
  int64_t best = 1;
  double best_ns = 0;
  for (const int64_t split : tensor_splits(tensor.shape, device)) {
    const TensorPlan plan = tensor_plan(program, tensor, {terms, split}, device);
    if (split > 1 && plan.tiles() * plan.split_k > device.multiprocessors) break;
    const double ns = tensor_ns(plan, work, device);
    if (split == 1 || ns < best_ns) best = split, best_ns = ns;
  }
  return best;
}

std::vector<ScheduleChoice> choices_for(const Program& program, const ContractShape& shape,
                                        const FusedKernel& kernel, const Device& device) {
  std::vector<ScheduleChoice> choices;
  const TensorShape tensor = tensor_shape(program, kernel, shape);
  if (can_use_tensor_cores(program, tensor, device)) {
    const KernelWork work = work_of(program, kernel);
    const int64_t terms = preferred_terms(kernel);
    const int64_t split = preferred_tensor_split(program, tensor, terms, work, device);
    const TensorPlan plan = tensor_plan(program, tensor, {terms, split}, device);
    const bool faster = tensor_ns(plan, work, device) < tiled_ns(shape, kernel, work, device);
    choices.push_back({"tensor_core", {0, 1}, faster ? 1 : 0});
    if (target::chosen(kernel, choices, "tensor_core") == 1) {
      if (!has_exact_parts(shape)) choices.push_back({"terms", {1, 3}, terms, {}, 3});
      std::vector<int64_t> splits = tensor_splits(tensor.shape, device);
      if (splits.size() > 1) choices.push_back({"split_k", std::move(splits), split});
      return choices;
    }
  }
  const std::vector<ScheduleChoice> tiled = tiled_choices(shape, kernel, device);
  choices.insert(choices.end(), tiled.begin(), tiled.end());
  return choices;
}

std::vector<ScheduleChoice> choices_of(const Program& program, const FusedKernel& kernel,
                                       const Device& device) {
  const auto shape = target::contract_shape(program, kernel);
  return shape ? choices_for(program, *shape, kernel, device) : std::vector<ScheduleChoice>();
}

// What is decided for tensor cores where the schedule wants those.
std::optional<TensorSchedule> tensor_schedule(const Program& program, const ContractShape& shape,
                                              const FusedKernel& kernel, const Device& device) {
  const std::vector<ScheduleChoice> choices = choices_for(program, shape, kernel, device);
  if (choices.empty() || choices.front().name != "tensor_core" ||
      target::chosen(kernel, choices, "tensor_core") == 0) {
    return std::nullopt;
  }
  const auto value = [&](std::string_view name) {
    const bool open = std::ranges::find(choices, name, &ScheduleChoice::name) != choices.end();
    return open ? target::chosen(kernel, choices, name) : 1;
  };
  return TensorSchedule{value("terms"), value("split_k")};
}

double estimate(const Program& program, const FusedKernel& kernel, const Device& device) {
  const auto shape = target::contract_shape(program, kernel);
  const KernelWork work = work_of(program, kernel);
  if (!shape || shape->is_empty()) return kernel_ns(work, 1e6, 1, device);
  const auto schedule = tensor_schedule(program, *shape, kernel, device);
  if (!schedule) return tiled_ns(*shape, kernel, work, device);
  const TensorShape tensor = tensor_shape(program, kernel, *shape);
  return tensor_ns(tensor_plan(program, tensor, *schedule, device), work, device);
}

Result<KernelCode> print_contract(PrintContext& context, const Device& device) {
  const ContractShape shape = TRY(target::contract_shape(context.program, context.kernel));
  if (shape.is_empty()) {
    KernelCode code;
    code.schedule = "Nothing to compute.";
    return code;
  }
  if (const auto schedule = tensor_schedule(context.program, shape, context.kernel, device)) {
    const TensorShape tensor = tensor_shape(context.program, context.kernel, shape);
    const TensorPlan plan = tensor_plan(context.program, tensor, *schedule, device);
    return print_tensor_kernel(context, tensor.shape, plan);
  }
  return print_contract_kernel(context, shape, contract_schedule(shape, context.kernel, device));
}

}  // namespace

const SkeletonPrinter& contract_skeleton() {
  static constexpr SkeletonPrinter printer{choices_of, estimate, print_contract};
  return printer;
}

}  // namespace ke::cuda
