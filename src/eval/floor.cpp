// SPDX-License-Identifier: Apache-2.0
//
// Roofline floors from the measured profile, and the much lower bound that rejects.
#include "eval/floor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "ir/needed.hpp"

namespace ke {
namespace {

// Operations after which not every element of an operand is needed.
constexpr std::array<std::string_view, 14> kPicking{
    "aten.index",  "aten.gather",     "aten.embedding", "aten.select",      "aten.slice",
    "aten.narrow", "aten.as_strided", "aten.max_pool",  "aten.avg_pool",    "aten.convolution",
    "aten.tril",   "aten.triu",       "aten.upsample",  "aten.constant_pad"};

bool picks(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
    return std::any_of(kPicking.begin(), kPicking.end(),
                       [&](std::string_view prefix) { return node.op.starts_with(prefix); });
  });
}

// Of the inputs that some output depends on.
int64_t needed_input_bytes(const Problem& problem) {
  if (!problem.graph) return problem.input_bytes();
  const ir::Graph& graph = *problem.graph;
  const ir::Needed needed = ir::needed_by_outputs(graph);
  int64_t bytes = 0;
  for (size_t i = 0; i < problem.inputs.size() && i < graph.inputs.size(); ++i) {
    if (needed.values[static_cast<size_t>(graph.inputs[i].value.index)]) {
      bytes += problem.inputs[i].bytes();
    }
  }
  return bytes;
}

bool has_empty_argument(const Problem& problem) {
  return std::any_of(problem.inputs.begin(), problem.inputs.end(), [](const TensorSpec& spec) {
    return spec.kind == ir::InputKind::argument && spec.elements() == 0;
  });
}

int64_t time_ns(double work, double rate) {
  return static_cast<int64_t>(std::ceil(work / rate * 1e9));
}

}  // namespace

int64_t bytes_that_must_move(const Problem& problem) {
  // With nothing to combine them with, weights need not be read.
  if (has_empty_argument(problem)) return problem.output_bytes();
  if (!problem.graph || picks(*problem.graph)) return problem.output_bytes();
  return problem.output_bytes() + needed_input_bytes(problem);
}

int64_t physical_floor_ns(const Problem& problem, const MachineProfile& machine, bool cold) {
  const int64_t moved = has_empty_argument(problem)
                            ? problem.output_bytes()
                            : needed_input_bytes(problem) + problem.output_bytes();
  const double bytes = static_cast<double>(moved);
  const double bandwidth =
      cold ? machine.bandwidth_all : std::max(machine.bandwidth_llc_all, machine.bandwidth_all);
  const int64_t moving = time_ns(bytes, bandwidth);
  const int64_t computing =
      time_ns(static_cast<double>(problem.minimal_flops()), machine.flops_f32_all);
  return std::max<int64_t>({1, moving, computing});
}

// Measured bandwidths may have been taken beside other work, so they are tripled. Data that fits
// the first-level caches can move two vectors a cycle and thread; 6 GHz is beyond today's clocks.
int64_t impossible_below_ns(const Problem& problem, const MachineProfile& machine, bool cold) {
  const int64_t bytes = bytes_that_must_move(problem);
  const double l1_rate = 6e9 * 2 * machine.vector_bytes * machine.threads;
  double rate = l1_rate;
  if (bytes > machine.l1_bytes * machine.threads) {
    const bool memory = cold || bytes > machine.llc_bytes;
    rate = 3 * (memory ? std::max(machine.bandwidth_all, machine.bandwidth_single)
                       : std::max(machine.bandwidth_llc_all, machine.bandwidth_all));
    rate = std::min(rate, l1_rate);
  }
  return static_cast<int64_t>(static_cast<double>(bytes) / rate * 1e9);
}

}  // namespace ke
