// SPDX-License-Identifier: Apache-2.0
//
// Legal values, the cost model and its pick. The model counts cycles of the register tile (two
// fused multiply-adds and two loads a cycle, four cycles latency), of packing and of the epilogue,
// spreads blocks over threads in waves, and is bounded below by the memory roofline. Its weights
// were fitted to Zen 3; only ratios between schedules matter for the pick.
#include "target/x86/contract_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.hpp"
#include "target/c_printer.hpp"
#include "target/x86/access.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {
namespace {

constexpr int64_t kPackedBytesMax = int64_t{1} << 30;

int64_t registers_of(const MachineProfile& machine) { return machine.vector_bytes >= 64 ? 32 : 16; }

int64_t lanes_of(const ContractShape& shape, const MachineProfile& machine) {
  return machine.vector_bytes / ir::bytes_of(shape.dtype);
}

// The right operand can be read in place when whole vectors of n lie in memory as they are.
bool reads_b_in_place(const ContractShape& shape, int64_t lanes) {
  return shape.b.strided && shape.b.strided->row == 1 && shape.n % lanes == 0;
}

int64_t packed_b_bytes(const ContractShape& shape, int64_t tile_n) {
  return shape.batches() * shape.k * round_up(shape.n, tile_n) * ir::bytes_of(shape.dtype);
}

// Values up to the extent, and the extent itself.
std::vector<int64_t> values_up_to(std::vector<int64_t> values, int64_t extent) {
  std::erase_if(values, [&](int64_t value) { return value >= extent; });
  values.push_back(std::max<int64_t>(extent, 1));
  return values;
}

std::vector<int64_t> tile_m_values(const ContractShape& shape, const MachineProfile& machine) {
  return registers_of(machine) == 32 ? values_up_to({1, 2, 4, 6, 8, 9, 12, 14, 28}, shape.m)
                                     : values_up_to({1, 2, 3, 4, 5, 6, 8, 12}, shape.m);
}

// Rows of a tile that leave registers for one row of the right operand and one broadcast.
int64_t tile_m_max(int64_t vectors, const MachineProfile& machine) {
  return (registers_of(machine) - 1 - vectors) / vectors;
}

// --- Cost ---------------------------------------------------------------------------------------

double tile_cycles(int64_t rows, int64_t vectors, double depth) {
  const double arithmetic = static_cast<double>(rows * vectors) / 2;
  const double loads = static_cast<double>(rows + vectors) / 2;
  return depth * std::max({arithmetic, loads, 4.2}) + 12 +
         1.5 * static_cast<double>(rows * vectors);
}

// Cycles of all tiles of the problem, edges included, for one pass over the whole of k.
double product_cycles(const ContractShape& shape, const ContractSchedule& s, int64_t k_blocks) {
  const double depth =
      static_cast<double>(shape.k) / static_cast<double>(std::max<int64_t>(k_blocks, 1));
  const int64_t rows_left = shape.m % s.tile_m;
  const int64_t vectors_left = ceil_div(shape.n % s.tile_n, s.lanes);
  const auto column = [&](int64_t vectors) {
    double cycles = static_cast<double>(shape.m / s.tile_m) * tile_cycles(s.tile_m, vectors, depth);
    if (rows_left > 0) cycles += tile_cycles(rows_left, vectors, depth);
    return cycles;
  };
  double cycles = static_cast<double>(shape.n / s.tile_n) * column(s.vectors());
  if (vectors_left > 0) cycles += column(vectors_left);
  return cycles * static_cast<double>(k_blocks * shape.batches());
}

double packing_cycles_an_element(const Operand& operand, bool row_is_copied) {
  if (!operand.strided) return 8;
  if (operand.strided->row == 1 && row_is_copied) return 0.4;
  return operand.strided->depth == 1 ? 0.8 : operand.strided->row == 1 ? 0.6 : 2;
}

// Reading the left operand where it is: as many streams as the tile has rows, and rows whose
// distance is a multiple of a cache's period compete for its eight ways.
double in_place_penalty(const ContractShape& shape, const ContractSchedule& s,
                        const MachineProfile& machine) {
  const int64_t bytes = ir::bytes_of(shape.dtype);
  const int64_t depth = std::min(s.block_k, shape.k);
  if (std::min(s.block_m, shape.m) * depth * bytes <= machine.l1_bytes / 2) return 1;
  const int64_t stride =
      std::abs(shape.a.strided->depth == 1 ? shape.a.strided->row : shape.a.strided->depth) * bytes;
  const int64_t walked = shape.a.strided->depth == 1 ? s.block_m : depth;
  const int64_t period = machine.l2_bytes / 8;
  const int64_t kept = 8 * (period / std::gcd(std::max<int64_t>(stride, 1), period));
  return walked > kept ? 1.4 : 1.04;
}

struct Work {
  double block_cycles = 0;   // everything that blocks do, all together
  double shared_cycles = 0;  // packing before and combining after
  int forks = 0;
};

Work work_of(const ContractShape& shape, const ContractSchedule& s, const ContractTraffic& traffic,
             const MachineProfile& machine) {
  const ContractGrid grid = grid_of(shape, s);
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k), batches = static_cast<double>(shape.batches());
  const double bytes = static_cast<double>(ir::bytes_of(shape.dtype));
  Work work{.forks = s.threads > 1 ? 1 : 0};
  double product = product_cycles(shape, s, std::max<int64_t>(grid.blocks_k, 1));
  const double panel_b = static_cast<double>(s.tile_n * std::min(s.block_k, shape.k)) * bytes;
  if (panel_b > 0.8 * static_cast<double>(machine.l1_bytes)) product *= 1.12;
  const double block_a = static_cast<double>(s.block_m * std::min(s.block_k, shape.k)) * bytes;
  if (block_a > 0.6 * static_cast<double>(machine.l2_bytes)) product *= 1.10;
  if (s.pack_a == Packing::none) product *= in_place_penalty(shape, s, machine);
  if (s.pack_b == Packing::none && shape.m > s.tile_m) {
    product *= s.tile_n == shape.n ? 1.0 : 1.15;
  }
  // Every block reads the right operand's panels from the last-level cache, half of it hidden.
  product += n * k * batches * bytes * static_cast<double>(grid.blocks_m) / 20;
  // Many rows at a time give the write buffers short runs of each.
  if (s.streaming && s.block_m > 48) product *= 1.1;
  work.block_cycles = product;
  if (s.pack_a != Packing::none) {
    work.block_cycles += m * k * batches * static_cast<double>(grid.blocks_n) *
                         packing_cycles_an_element(shape.a, false);
  }
  const double pack_b = n * k * batches * packing_cycles_an_element(shape.b, true);
  if (s.pack_b == Packing::block) work.block_cycles += pack_b * static_cast<double>(grid.blocks_m);
  if (s.pack_b == Packing::whole) {
    work.shared_cycles += pack_b;
    const double packed = static_cast<double>(packed_b_bytes(shape, s.tile_n));
    if (packed > 0.5 * static_cast<double>(machine.llc_bytes)) {
      work.shared_cycles += 3 * packed / 6;  // written to memory and read again
    }
    work.forks += s.threads > 1 ? 1 : 0;
  }
  const double lanes = static_cast<double>(s.lanes);
  const double finish =
      m * n * batches * (2 + static_cast<double>(traffic.epilogue_operations)) / lanes;
  if (s.split_k > 1) {
    // Parts are written and read back through the last-level cache.
    work.shared_cycles += finish + m * n * batches * static_cast<double>(s.split_k) * bytes / 4;
    work.forks += s.threads > 1 ? 1 : 0;
  } else {
    work.block_cycles += finish;
  }
  if (grid.keeps_sums) {
    const double sums = static_cast<double>(grid.tiles_a_block * s.tile_m * s.tile_n) * bytes;
    const bool near = sums < 0.5 * static_cast<double>(machine.l2_bytes);
    work.block_cycles += m * n * batches * static_cast<double>(grid.blocks_k) * (near ? 0.15 : 0.4);
  }
  return work;
}

// Non-temporal stores fill whole cache lines, or memory is written twice.
bool may_stream(const ContractShape& shape, const ContractTraffic& traffic, int64_t tile_n) {
  return traffic.streamable && tile_n * ir::bytes_of(shape.dtype) % 64 == 0;
}

double memory_ns(const ContractSchedule& s, const ContractTraffic& traffic,
                 const MachineProfile& machine) {
  const double written = static_cast<double>(traffic.output_bytes);
  const double total = static_cast<double>(traffic.input_bytes) + written;
  const bool big = total > static_cast<double>(machine.llc_bytes);
  const double bandwidth = big ? (s.threads > 1 ? machine.bandwidth_all : machine.bandwidth_single)
                               : machine.bandwidth_llc_all;
  return (total + (big && !s.streaming ? written : 0)) / bandwidth * 1e9;
}

// --- The pick -----------------------------------------------------------------------------------

int64_t nearest(const std::vector<int64_t>& values, int64_t wanted) {
  const auto distance = [&](int64_t value) { return std::abs(value - wanted); };
  return *std::min_element(values.begin(), values.end(),
                           [&](int64_t a, int64_t b) { return distance(a) < distance(b); });
}

struct Space {
  std::vector<int64_t> tile_m, tile_n, block_m, block_n, block_k, pack_a, pack_b, threads, split_k;
};

Space space_of(const ContractShape& shape, const MachineProfile& machine) {
  Space space;
  const int64_t lanes = lanes_of(shape, machine);
  space.tile_m = tile_m_values(shape, machine);
  for (int64_t vectors = 1; vectors <= 4; ++vectors) {
    space.tile_n.push_back(vectors * lanes);
    if (vectors * lanes >= shape.n) break;
  }
  space.block_m = values_up_to({24, 48, 96, 144, 240, 336, 480, 960}, shape.m);
  space.block_n = values_up_to({32, 64, 128, 256, 512, 1024, 2048, 4096}, shape.n);
  space.block_k = values_up_to({64, 128, 192, 256, 320, 384, 512, 768, 1024}, shape.k);
  space.pack_a = shape.a.strided ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1};
  if (reads_b_in_place(shape, lanes)) space.pack_b.push_back(0);
  space.pack_b.push_back(1);
  if (packed_b_bytes(shape, 4 * lanes) <= kPackedBytesMax) space.pack_b.push_back(2);
  space.threads = {1};
  if (machine.threads > 1) space.threads.push_back(machine.threads);
  space.split_k = {1};
  for (int64_t split = 2; split <= 64 && shape.k / split >= 128; split *= 2) {
    if (shape.batches() * shape.m * shape.n * split > (int64_t{1} << 24)) break;
    space.split_k.push_back(split);
  }
  return space;
}

// A panel of the right operand takes half of L1; k is cut evenly.
int64_t k_blocks_of(const ContractShape& shape, int64_t tile_n, const MachineProfile& machine) {
  const int64_t depth =
      std::max<int64_t>(machine.l1_bytes / 2 / (tile_n * ir::bytes_of(shape.dtype)), 64);
  return std::max<int64_t>((shape.k + depth / 4) / depth, 1);
}

// The tile with the fewest cycles for this problem; on a tie the squarer one, which loads less.
void pick_tile(const ContractShape& shape, const Space& space, const ContractTraffic& traffic,
               const MachineProfile& machine, ContractSchedule& schedule) {
  double best = INFINITY;
  const bool streams = traffic.streamable && traffic.output_bytes > machine.llc_bytes / 2 &&
                       shape.n * ir::bytes_of(shape.dtype) >= 64;
  schedule.streaming = streams;
  for (int64_t tile_n : space.tile_n) {
    for (int64_t tile_m : space.tile_m) {
      ContractSchedule tried = schedule;
      tried.tile_m = tile_m;
      tried.tile_n = tile_n;
      if (tile_m > tile_m_max(tried.vectors(), machine)) continue;
      if (streams && !may_stream(shape, traffic, tile_n)) continue;
      const double loads = static_cast<double>(tile_m + tried.vectors()) /
                           static_cast<double>(tile_m * tried.vectors());
      double cycles =
          product_cycles(shape, tried, k_blocks_of(shape, tile_n, machine)) * (1 + 0.02 * loads);
      const int64_t rest = shape.n % tile_n;
      if (rest < tried.lanes) {  // finished one by one
        cycles += static_cast<double>(shape.batches() * shape.m * rest *
                                      (3 + traffic.epilogue_operations));
      }
      if (cycles < best) {
        best = cycles;
        schedule = tried;
      }
    }
  }
}

ContractSchedule pick(const ContractShape& shape, const Space& space,
                      const ContractTraffic& traffic, const MachineProfile& machine) {
  ContractSchedule start{.lanes = lanes_of(shape, machine)};
  pick_tile(shape, space, traffic, machine, start);
  const int64_t k_blocks = k_blocks_of(shape, start.tile_n, machine);
  start.block_k = nearest(space.block_k, ceil_div(shape.k, k_blocks));
  ContractSchedule best = start;
  double best_ns = INFINITY;
  const auto consider = [&](ContractSchedule tried, int64_t block_m, int64_t block_n) {
    tried.block_m = round_up(block_m, start.tile_m);
    tried.block_n = round_up(block_n, start.tile_n);
    const double ns = contract_estimate_ns(shape, tried, traffic, machine);
    if (ns >= best_ns) return;
    best_ns = ns;
    best = tried;
    best.block_m = block_m;
    best.block_n = block_n;
  };
  for (int64_t threads : space.threads) {
    for (int64_t split : space.split_k) {
      for (int64_t pack_a : space.pack_a) {
        for (int64_t pack_b : space.pack_b) {
          ContractSchedule tried = start;
          tried.threads = threads;
          tried.split_k = split;
          tried.pack_a = static_cast<Packing>(pack_a);
          tried.pack_b = static_cast<Packing>(pack_b);
          for (int64_t block_m : space.block_m) {
            for (int64_t block_n : space.block_n) consider(tried, block_m, block_n);
          }
        }
      }
    }
  }
  return best;
}

// Worth offering: k comes in blocks, and rows of the left operand are walked along k.
bool prefetches(const ContractShape& shape, const ContractSchedule& best) {
  return shape.k > best.block_k && shape.a.strided && shape.a.strided->depth == 1;
}

}  // namespace

ContractGrid grid_of(const ContractShape& shape, const ContractSchedule& s) {
  ContractGrid grid;
  grid.blocks_m = ceil_div(shape.m, s.block_m);
  grid.blocks_n = ceil_div(shape.n, s.block_n);
  grid.blocks_k = std::max<int64_t>(ceil_div(shape.k, s.block_k), 1);
  grid.blocks = grid.blocks_m * grid.blocks_n * shape.batches() * s.split_k;
  grid.panels_n = ceil_div(shape.n, s.tile_n);
  grid.k_blocks_a_split = ceil_div(grid.blocks_k, s.split_k);
  grid.keeps_sums = grid.blocks_k > 1 || s.split_k > 1;
  const int64_t block_m = std::min(s.block_m, round_up(shape.m, s.tile_m));
  const int64_t block_n = std::min(s.block_n, round_up(shape.n, s.tile_n));
  grid.tiles_a_block = ceil_div(block_m, s.tile_m) * ceil_div(block_n, s.tile_n);
  return grid;
}

ContractTraffic traffic_of(const ir::Program& program, const ir::FusedKernel& kernel,
                           const ContractShape& shape, int64_t vector_bytes) {
  ContractTraffic traffic;
  for (ir::TensorId id : kernel.reads) {
    traffic.input_bytes += program.tensor(id).elements() * bytes_of(program.tensor(id).dtype);
  }
  for (ir::TensorId id : kernel.writes) {
    traffic.output_bytes += program.tensor(id).elements() * bytes_of(program.tensor(id).dtype);
  }
  traffic.streamable = true;
  for (const ir::FusedStage& stage : shape.stages) {
    if (&stage != &shape.stages.front()) {
      ir::walk(stage.body, [&](const ir::Expr& expr) {
        const bool function = expr.kind == ir::Expr::Kind::unary &&
                              expr.unary >= ir::UnaryOp::exp && expr.unary <= ir::UnaryOp::erf;
        traffic.epilogue_operations += function ? 50 : expr.operands.empty() ? 0 : 1;
      });
    }
    if (std::find(kernel.writes.begin(), kernel.writes.end(), stage.output) ==
        kernel.writes.end()) {
      continue;
    }
    const ir::Tensor& tensor = program.tensor(stage.output);
    const target::Address address = target::address_of(tensor, stage.store);
    const int64_t lanes = vector_bytes / bytes_of(shape.dtype);
    bool aligned = address.is_affine() && address.base % lanes == 0 && shape.n % lanes == 0 &&
                   tensor.dtype == shape.dtype && address.coefficient_of_axis(shape.n_axis()) == 1;
    for (int axis = 0; axis < shape.n_axis(); ++axis) {
      aligned = aligned && address.coefficient_of_axis(axis) % lanes == 0;
    }
    traffic.streamable = traffic.streamable && aligned;
  }
  return traffic;
}

std::vector<ScheduleChoice> contract_choices(const ContractShape& shape,
                                             const ContractTraffic& traffic,
                                             const MachineProfile& machine) {
  if (shape.is_empty()) return {};
  const Space space = space_of(shape, machine);
  const ContractSchedule best = pick(shape, space, traffic, machine);
  std::vector<ScheduleChoice> choices;
  const auto add = [&](const char* name, const std::vector<int64_t>& values, int64_t preferred) {
    if (values.size() > 1) choices.push_back({name, values, preferred});
  };
  add("tile_m", space.tile_m, best.tile_m);
  add("tile_n", space.tile_n, best.tile_n);
  add("block_m", space.block_m, best.block_m);
  add("block_n", space.block_n, best.block_n);
  add("block_k", space.block_k, best.block_k);
  add("pack_a", space.pack_a, static_cast<int64_t>(best.pack_a));
  add("pack_b", space.pack_b, static_cast<int64_t>(best.pack_b));
  add("threads", space.threads, best.threads);
  add("split_k", space.split_k, best.split_k);
  add("unroll", {1, 2, 4, 8}, best.unroll);
  if (prefetches(shape, best)) add("prefetch", {0, 1}, 1);
  if (traffic.streamable) add("streaming", {0, 1}, best.streaming ? 1 : 0);
  return choices;
}

ContractSchedule contract_schedule(const ContractShape& shape, const ir::FusedKernel& kernel,
                                   std::span<const ScheduleChoice> choices,
                                   const ContractTraffic& traffic, const MachineProfile& machine) {
  const auto value = [&](const char* name, int64_t otherwise) {
    for (const ScheduleChoice& choice : choices) {
      if (choice.name == name) return chosen(kernel, choices, name);
    }
    return otherwise;
  };
  const Space space = space_of(shape, machine);
  ContractSchedule s{.lanes = lanes_of(shape, machine)};
  s.tile_n = value("tile_n", space.tile_n.front());
  s.tile_m = std::min(value("tile_m", space.tile_m.front()), tile_m_max(s.vectors(), machine));
  s.block_m = round_up(value("block_m", space.block_m.front()), s.tile_m);
  s.block_n = round_up(value("block_n", space.block_n.front()), s.tile_n);
  s.block_k = value("block_k", space.block_k.front());
  s.pack_a = static_cast<Packing>(value("pack_a", space.pack_a.front()));
  s.pack_b = static_cast<Packing>(value("pack_b", space.pack_b.front()));
  s.threads = value("threads", 1);
  s.split_k = std::clamp<int64_t>(value("split_k", 1), 1, grid_of(shape, s).blocks_k);
  const ContractGrid grid = grid_of(shape, s);
  s.split_k = ceil_div(grid.blocks_k, grid.k_blocks_a_split);  // no part is empty
  s.unroll = value("unroll", 4);
  s.prefetch = value("prefetch", 0) == 1;
  s.streaming = may_stream(shape, traffic, s.tile_n) && value("streaming", 0) == 1;
  return s;
}

double contract_estimate_ns(const ContractShape& shape, const ContractSchedule& schedule,
                            const ContractTraffic& traffic, const MachineProfile& machine) {
  if (shape.is_empty()) return 0;
  const double vectors_a_second =
      machine.flops_f32_single / (2.0 * static_cast<double>(machine.vector_bytes) / 4);
  const double cycle_ns = 2e9 / vectors_a_second;
  const Work work = work_of(shape, schedule, traffic, machine);
  const int64_t blocks = grid_of(shape, schedule).blocks;
  const double threads = static_cast<double>(schedule.threads);
  const double waves = static_cast<double>(ceil_div(blocks, schedule.threads));
  // Of all work, what one thread does at least: its waves of blocks, or one whole block.
  const double rows = static_cast<double>(std::min(schedule.block_m, shape.m));
  const double columns = static_cast<double>(std::min(schedule.block_n, shape.n));
  const double whole_block = rows * columns /
                             static_cast<double>(shape.m * shape.n * shape.batches()) /
                             static_cast<double>(schedule.split_k);
  const double share = std::max(waves / static_cast<double>(blocks), whole_block);
  const double block_ns =
      work.block_cycles * cycle_ns * share + 50 * static_cast<double>(blocks) / threads;
  const double shared_ns = work.shared_cycles * cycle_ns / threads;
  return std::max(block_ns + shared_ns, memory_ns(schedule, traffic, machine)) +
         kForkJoinNs * work.forks + 300;
}

}  // namespace ke::x86
