// SPDX-License-Identifier: Apache-2.0
//
// The skeleton of matrix products. contract_shape brings the kernel into canonical form,
// contract_schedule holds choices and costs, contract_pack and contract_kernel print the parts that
// are put together here.
#include <fmt/format.h>

#include <algorithm>

#include "target/x86/contract_print.hpp"

namespace ke::x86 {
namespace {

constexpr int64_t kLightEpilogue = 4;  // operations that are worth printing once a register

std::vector<ScheduleChoice> choices(const ir::Program& program, const ir::FusedKernel& kernel,
                                    const MachineProfile& machine) {
  const Result<ContractShape> shape = contract_shape(program, kernel);
  if (!shape) return {};
  return contract_choices(*shape, traffic_of(program, kernel, *shape, machine.vector_bytes),
                          machine);
}

double estimate_ns(const ir::Program& program, const ir::FusedKernel& kernel,
                   const MachineProfile& machine) {
  const Result<ContractShape> shape = contract_shape(program, kernel);
  if (!shape || shape->is_empty()) return 0;
  const ContractTraffic traffic = traffic_of(program, kernel, *shape, machine.vector_bytes);
  const std::vector<ScheduleChoice> legal = contract_choices(*shape, traffic, machine);
  return contract_estimate_ns(*shape, contract_schedule(*shape, kernel, legal, traffic, machine),
                              traffic, machine);
}

std::string words(const ContractCode& code) {
  const ContractSchedule& s = code.schedule;
  const auto packing = [](Packing how) {
    return how == Packing::none    ? "read in place"
           : how == Packing::block ? "packed block by block"
                                   : "packed whole";
  };
  std::string text = fmt::format(
      "matrix product of {}{} x {} x {}: register tile {} x {}, blocks {} x {}, k in steps of {}; "
      "left operand {}, right {}; {} thread{}",
      code.shape.batches() > 1 ? fmt::format("{} times ", code.shape.batches()) : "", code.shape.m,
      code.shape.k, code.shape.n, s.tile_m, s.tile_n, s.block_m, s.block_n, s.block_k,
      packing(s.pack_a), packing(s.pack_b), s.threads, s.threads > 1 ? "s" : "");
  if (s.split_k > 1) text += fmt::format("; k summed in {} parts", s.split_k);
  if (s.streaming) text += "; outputs stored past the caches";
  return text;
}

Result<KernelCode> print(PrintContext& context) {
  const ContractShape shape = TRY(contract_shape(context.program, context.kernel));
  if (shape.is_empty()) return KernelCode{.schedule = "nothing to compute"};
  const ContractTraffic traffic =
      traffic_of(context.program, context.kernel, shape, context.machine.vector_bytes);
  const std::vector<ScheduleChoice> legal = contract_choices(shape, traffic, context.machine);
  const ContractSchedule schedule =
      contract_schedule(shape, context.kernel, legal, traffic, context.machine);
  ContractCode code{.context = context,
                    .shape = shape,
                    .schedule = schedule,
                    .grid = grid_of(shape, schedule),
                    .arguments = argument_block(context, /*with_scratch=*/true)};
  const bool single = shape.dtype == ir::DType::float32;
  code.element = single ? "float" : "double";
  code.vector = fmt::format("{}x{}", single ? "f32" : "f64", schedule.lanes);
  code.finishes_in_registers =
      !code.grid.keeps_sums && traffic.epilogue_operations <= kLightEpilogue;

  code.out.lines(code.arguments.declaration);
  code.out.line("");
  code.out.line(fmt::format("namespace {} {{", context.kernel.name));
  code.out.line("");
  print_constants(code);
  print_packing(code);
  print_epilogue(code);
  print_tiles(code);
  print_blocks(code);
  code.out.line(fmt::format("}}  // namespace {}", context.kernel.name));

  const ContractScratch scratch = scratch_of(shape, schedule);
  const int64_t elements =
      scratch.packed_b + scratch.partial_sums + scratch.slot() * schedule.threads;
  return KernelCode{.functions = code.out.take(),
                    .launch = print_launch(code),
                    .schedule = words(code),
                    .scratch_bytes = kCounterBytes + elements * ir::bytes_of(shape.dtype),
                    .helpers = context.helpers};
}

}  // namespace

ContractScratch scratch_of(const ContractShape& shape, const ContractSchedule& s) {
  const ContractGrid grid = grid_of(shape, s);
  const int64_t depth = std::min(s.block_k, std::max<int64_t>(shape.k, 1));
  const int64_t line = 16;  // elements; 64 bytes or more
  const int64_t rows = std::min(s.block_m, round_up(shape.m, s.tile_m));
  const int64_t columns = std::min(s.block_n, round_up(shape.n, s.tile_n));
  const int64_t tile = s.tile_m * s.tile_n;
  ContractScratch scratch;
  if (s.pack_b == Packing::whole) {
    const int64_t steps = std::max<int64_t>(shape.k, 1);  // an empty sum has a place, too
    scratch.packed_b = round_up(shape.batches() * steps * grid.panels_n * s.tile_n, line);
  }
  if (s.split_k > 1) {
    scratch.partial_sums = round_up(grid.blocks * grid.tiles_a_block * tile, line);
  }
  // A transposed panel may spill one vector past its end.
  if (s.pack_a != Packing::none) scratch.slot_a = round_up(rows * depth, line) + line;
  if (s.pack_b == Packing::block) scratch.slot_b = round_up(columns * depth, line);
  if (s.split_k == 1) {
    scratch.slot_sums = round_up((grid.keeps_sums ? grid.tiles_a_block : 1) * tile, line);
  }
  return scratch;
}

void print_constants(ContractCode& code) {
  target::CodeWriter& out = code.out;
  const ContractSchedule& s = code.schedule;
  const ContractShape& shape = code.shape;
  const ContractScratch scratch = scratch_of(shape, s);
  const int64_t bytes = ir::bytes_of(shape.dtype);
  const auto constant = [&](std::string_view name, int64_t value, std::string_view why = "") {
    out.line(fmt::format("constexpr int64_t {} = {};{}{}", name, value, why.empty() ? "" : "  // ",
                         why));
  };
  out.line(fmt::format("constexpr int64_t kM = {}, kN = {}, kK = {};", shape.m, shape.n, shape.k));
  constant("kLanes", s.lanes);
  out.line(fmt::format("constexpr int64_t kTileM = {}, kTileVectors = {};", s.tile_m, s.vectors()));
  constant("kTileN", s.tile_n);
  out.line(fmt::format("constexpr int64_t kBlockM = {}, kBlockN = {}, kBlockK = {};", s.block_m,
                       s.block_n, s.block_k));
  out.line(fmt::format("constexpr int64_t kBlocksM = {}, kBlocksN = {}, kBlocksK = {};",
                       code.grid.blocks_m, code.grid.blocks_n, code.grid.blocks_k));
  if (code.grid.blocks > 1) constant("kBlocks", code.grid.blocks, "of all batches and parts of k");
  if (s.pack_b == Packing::whole) {
    constant("kPanelsN", code.grid.panels_n);
    const int64_t columns = code.pack_columns();
    const int64_t groups = (shape.n + columns - 1) / columns;
    constant("kPackColumns", columns, "of a packing task");
    constant("kPackGroups", groups);
    constant("kPackTasks", shape.batches() * code.grid.blocks_k * groups);
  }
  if (s.split_k > 1) {
    constant("kSplits", s.split_k);
    constant("kSplitK", code.grid.k_blocks_a_split * s.block_k);
    constant("kPlaces", code.grid.blocks / s.split_k);
    constant("kTilesABlock", code.grid.tiles_a_block);
  }
  out.line("// How the register tile walks its operands, in elements.");
  const bool packs_a = s.pack_a != Packing::none, packs_b = s.pack_b != Packing::none;
  out.line(fmt::format("constexpr int64_t kRowLeft = {}, kStepLeft = {}, kStepRight = {};",
                       packs_a ? 1 : shape.a.strided->row,
                       packs_a ? s.tile_m : shape.a.strided->depth,
                       packs_b ? s.tile_n : shape.b.strided->depth));
  out.line("// Scratch: offsets in bytes, then one slot a thread, in elements.");
  int64_t offset = kCounterBytes;
  if (scratch.packed_b > 0) constant("kPackedB", offset);
  offset += scratch.packed_b * bytes;
  if (scratch.partial_sums > 0) constant("kPartialSums", offset);
  offset += scratch.partial_sums * bytes;
  constant("kSlots", offset);
  constant("kSlot", scratch.slot());
  if (scratch.slot_b > 0) constant("kSlotB", scratch.slot_a);
  if (scratch.slot_sums > 0) constant("kSlotSums", scratch.slot_a + scratch.slot_b);
  out.line("");
}

std::string print_launch(const ContractCode& code) {
  const std::string& name = code.context.kernel.name;
  const ContractSchedule& s = code.schedule;
  target::CodeWriter out;
  out.open("");
  out.line(
      fmt::format("{} {}_arguments = {};", code.arguments.type, name, code.arguments.initializer));
  const bool parallel = s.threads > 1;
  const auto launch = [&](std::string_view function, const std::string& tasks) {
    out.lines(launch_tasks(code.context, code.arguments, fmt::format("{}::{}", name, function),
                           tasks, parallel));
  };
  if (s.pack_b == Packing::whole) launch("pack_b", name + "::kPackTasks");
  const std::string slot =
      fmt::format("({}*)({} + {}::kSlots)", code.element, code.scratch(), name);
  if (code.grid.blocks == 1) {
    out.line(fmt::format("{0}::multiply_block(0, {1}, &{0}_arguments);", name, slot));
  } else if (parallel) {
    out.line(fmt::format("*(int64_t*){} = 0;  // the next block to take", code.scratch()));
    launch("work", std::to_string(s.threads));
  } else {
    out.open(fmt::format("for (int64_t block = 0; block < {}::kBlocks; ++block)", name));
    out.line(fmt::format("{0}::multiply_block(block, {1}, &{0}_arguments);", name, slot));
    out.close();
  }
  if (s.split_k > 1) launch("combine", name + "::kPlaces");
  if (s.streaming && s.split_k == 1 && (!parallel || code.grid.blocks == 1)) {
    out.line("__builtin_ia32_sfence();");
  }
  out.close();
  return out.take();
}

const SkeletonPrinter& contract_skeleton() {
  static const SkeletonPrinter printer{choices, estimate_ns, print};
  return printer;
}

}  // namespace ke::x86
