// SPDX-License-Identifier: Apache-2.0
#include "domain/roofline.hpp"

#include <algorithm>

#include "ir/needed.hpp"

namespace ke {

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
  return std::ranges::any_of(problem.inputs, [](const TensorSpec& spec) {
    return spec.kind == ir::InputKind::argument && spec.elements() == 0;
  });
}

Roofline roofline(const Problem& problem, const MachineProfile& machine, bool cold) {
  Roofline roof;
  const int64_t read = has_empty_argument(problem) ? 0 : needed_input_bytes(problem);
  roof.bytes = static_cast<double>(read + problem.output_bytes());
  roof.flops = static_cast<double>(problem.minimal_flops());
  const double bandwidth =
      cold ? machine.bandwidth_all : std::max(machine.bandwidth_llc_all, machine.bandwidth_all);
  roof.moving_ns = roof.bytes / bandwidth * 1e9;
  roof.computing_ns = roof.flops / machine.flops_f32_all * 1e9;
  return roof;
}

}  // namespace ke
