// SPDX-License-Identifier: Apache-2.0
#include "target/x86/access.hpp"

namespace ke::x86 {

Traffic traffic_of(const ir::Program& program, const ir::FusedKernel& kernel) {
  Traffic traffic;
  for (const ir::TensorId id : kernel.reads) {
    traffic.read += static_cast<double>(footprint_bytes(program.tensor(id)));
  }
  for (const ir::TensorId id : kernel.writes) {
    traffic.written += static_cast<double>(footprint_bytes(program.tensor(id)));
  }
  for (const ir::FusedStage& stage : kernel.stages) {
    traffic.operations +=
        operations(*stage.body) * static_cast<double>(product_of(axes_of(kernel, stage)));
  }
  return traffic;
}

double move_ns(double bytes, double footprint, bool parallel, const MachineProfile& machine) {
  const bool cached = footprint < 0.7 * static_cast<double>(machine.llc_bytes);
  const double share = parallel ? 1.0 : 1.0 / machine.threads;
  const double dram = parallel ? machine.bandwidth_all : machine.bandwidth_single;
  return bytes / (cached ? machine.bandwidth_llc_all * share : dram) * 1e9;
}

double compute_ns(double count, bool vectorized, bool parallel, const MachineProfile& machine) {
  // The peak counts a fused multiply-add as two; mixed code reaches about a third of it.
  const double peak = parallel ? machine.flops_f32_all : machine.flops_f32_single;
  const double rate = peak / 3 / (vectorized ? 1.0 : machine.vector_bytes / 4.0);
  return count / rate * 1e9;
}

int natural_lanes(const ir::Program& program, const ir::FusedKernel& kernel,
                  const MachineProfile& machine) {
  int64_t wide = 0, narrow = 0;
  const auto count = [&](ir::TensorId id) {
    (bytes_of(program.tensor(id).dtype) == 8 ? wide : narrow) += 1;
  };
  for (const ir::TensorId id : kernel.reads) count(id);
  for (const ir::TensorId id : kernel.writes) count(id);
  return machine.vector_bytes / (narrow == 0 && wide > 0 ? 8 : 4);
}

bool stores_aligned(const ir::Program& program, const ir::FusedStage& stage, int lane_axis,
                    int lanes) {
  const ir::DType dtype = program.tensor(stage.output).dtype;
  const int64_t step = 32 / bytes_of(dtype);
  if (bytes_of(dtype) < 4 || lanes % step != 0) return false;
  const target::Address address = target::address_of(program.tensor(stage.output), stage.store);
  if (!address.is_affine() || address.base % step != 0) return false;
  for (const target::Address::Term& term : address.terms) {
    if (term.factor->axis != lane_axis && term.coefficient % step != 0) return false;
  }
  return address.coefficient_of_axis(lane_axis) == 1;
}

bool prefers_streaming(const ir::Program& program, const ir::FusedKernel& kernel,
                       const MachineProfile& machine) {
  int64_t outputs = 0, intermediates = 0;
  for (const ir::TensorId id : kernel.writes) {
    const ir::Tensor& tensor = program.tensor(id);
    (tensor.role == ir::Role::output ? outputs : intermediates) += footprint_bytes(tensor);
  }
  if (intermediates > 0) return intermediates + outputs > machine.llc_bytes / 2;
  return outputs >= 4 * machine.l1_bytes;
}

}  // namespace ke::x86
