// SPDX-License-Identifier: Apache-2.0
//
// Roofline floors from the measured profile, and the much lower bound that rejects.
#include "eval/floor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "domain/roofline.hpp"

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

int64_t whole_ns(double ns) { return static_cast<int64_t>(std::ceil(ns)); }

}  // namespace

int64_t bytes_that_must_move(const Problem& problem) {
  // With nothing to combine them with, weights need not be read.
  if (has_empty_argument(problem)) return problem.output_bytes();
  if (!problem.graph || picks(*problem.graph)) return problem.output_bytes();
  return problem.output_bytes() + needed_input_bytes(problem);
}

int64_t physical_floor_ns(const Problem& problem, const MachineProfile& machine, bool cold) {
  const Roofline roof = roofline(problem, machine, cold);
  return std::max<int64_t>(1, whole_ns(std::max(roof.moving_ns, roof.computing_ns)));
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
