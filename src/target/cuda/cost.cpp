// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/cost.hpp"

#include <algorithm>

#include "target/access.hpp"

namespace ke::cuda {

KernelWork work_of(const ir::Program& program, const ir::FusedKernel& kernel) {
  KernelWork work;
  for (const ir::TensorId id : kernel.reads) {
    work.read += static_cast<double>(target::footprint_bytes(program.tensor(id)));
  }
  for (const ir::TensorId id : kernel.writes) {
    work.written += static_cast<double>(target::footprint_bytes(program.tensor(id)));
  }
  for (const ir::FusedStage& stage : kernel.stages) {
    const double points = static_cast<double>(target::product_of(target::axes_of(kernel, stage)));
    work.operations += (target::operations(*stage.body) + 1) * points;
  }
  return work;
}

double kernel_ns(const KernelWork& work, double threads, double share, const Device& device) {
  // Half of the threads that fit already keep memory busy; fewer leave it idle in proportion.
  const double busy =
      std::clamp(threads / (0.5 * static_cast<double>(device.threads())), 0.002, 1.0);
  const double moving = work.read / device.read_bandwidth + work.written / device.write_bandwidth;
  const double memory = moving / (share * busy) * 1e9;
  // The peak counts a fused multiply-add as two. Mixed code reaches more than half of it: softmax
  // runs at memory's limit with that.
  const double arithmetic = work.operations / (device.flops_f32 * 0.6 * busy) * 1e9;
  return std::max(memory, arithmetic) + device.launch_ns;
}

std::string_view index_type(const AxisBinding& axis) {
  return axis.extent <= INT32_MAX ? "int" : "int64_t";
}

bool is_internal(const ir::FusedKernel& kernel, ir::TensorId tensor) {
  return std::find(kernel.internals.begin(), kernel.internals.end(), tensor) !=
         kernel.internals.end();
}

bool reads(const ir::FusedStage& stage, ir::TensorId tensor) {
  bool found = false;
  walk(stage.body, [&](const ir::Expr& expr) {
    found = found || (expr.kind == ir::Expr::Kind::load && expr.tensor == tensor);
  });
  return found;
}

bool reads_elsewhere(const ir::FusedStage& later, const ir::FusedStage& stage) {
  bool elsewhere = false;
  walk(later.body, [&](const ir::Expr& expr) {
    if (expr.kind != ir::Expr::Kind::load || expr.tensor != stage.output) return;
    for (size_t d = 0; d < stage.store.size(); ++d) {
      elsewhere = elsewhere || !same(*expr.operands[d], *stage.store[d]);
    }
  });
  return elsewhere;
}

}  // namespace ke::cuda
