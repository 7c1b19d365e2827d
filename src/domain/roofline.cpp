// SPDX-License-Identifier: Apache-2.0
#include "domain/roofline.hpp"

#include <algorithm>

namespace ke {

Roofline roofline(const Problem& problem, const MachineProfile& machine, bool cold) {
  Roofline roof;
  roof.bytes = static_cast<double>(problem.input_bytes() + problem.output_bytes());
  roof.flops = static_cast<double>(problem.flops);
  const double bandwidth =
      cold ? machine.bandwidth_all : std::max(machine.bandwidth_llc_all, machine.bandwidth_all);
  roof.moving_ns = roof.bytes / bandwidth * 1e9;
  roof.computing_ns = roof.flops / machine.flops_f32_all * 1e9;
  return roof;
}

}  // namespace ke
