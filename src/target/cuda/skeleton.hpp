// SPDX-License-Identifier: Apache-2.0
//
// What the skeletons of the cuda target share: each is one file that knows its schedule choices,
// their cost and how a kernel is printed. emit.cpp assembles their code into one source.
//
// Printed code includes <stdint.h> and "kernelevolve/device.h" alone, whose names begin with ke_.
// Names that the printer makes itself have an upper-case letter in them, which no tensor's has.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ir/plan.hpp"
#include "target/cuda/device.hpp"
#include "target/schedule.hpp"
#include "target/target.hpp"

namespace ke::cuda {

// One launch of a printed function: its line but for the arguments, which all functions of a kernel
// share (see Signature).
struct LaunchText {
  std::string function;
  int64_t grid_x = 1, grid_y = 1, block = 1;
  int64_t shared_bytes = 0;
};

struct KernelCode {
  std::string functions;  // at file scope; names begin with the kernel's
  std::vector<LaunchText> launches;
  std::string schedule;                      // in words, for the comment
  int64_t scratch_bytes = 0;                 // private to this kernel, not kept for others
  std::optional<ir::FusedKernel> rewritten;  // what was printed, where it is not what was asked
};

// What printing needs to know. One per kernel.
struct PrintContext {
  const ir::Program& program;
  const ir::FusedKernel& kernel;
  std::set<ir::TensorId> elsewhere = {};  // tensors that other kernels read
  int next_name = 0;

  const ir::Tensor& tensor(ir::TensorId id) const { return program.tensor(id); }
  std::string pointer(ir::TensorId id) const;
  // A name that nothing else has: the stem and a number.
  std::string fresh(const std::string& stem);
};

// The parameters that every function of a kernel has: what it writes, what it reads (constants are
// at file scope), and its own scratch when asked for.
std::string parameters(const PrintContext& context, bool with_scratch);
// `extern "C" __global__ void __launch_bounds__(threads) function(parameters)`. `alone`: one block
// may have all registers of a multiprocessor. `cluster`: blocks that run together.
std::string function_head(const PrintContext& context, const std::string& function, int64_t threads,
                          bool with_scratch, bool alone = false, int64_t cluster = 1);

// C variables for axes: their names, made different from every tensor of the program.
std::vector<std::string> axis_variables(const PrintContext& context,
                                        const std::vector<ir::Axis>& axes);

// One skeleton. Stateless functions, safe to call from many threads.
struct SkeletonPrinter {
  std::vector<ScheduleChoice> (*choices)(const ir::Program&, const ir::FusedKernel&, const Device&);
  double (*estimate_ns)(const ir::Program&, const ir::FusedKernel&, const Device&);
  // Errc::unavailable with a sentence when this kernel cannot be printed.
  Result<KernelCode> (*print)(PrintContext& context, const Device&);
};

struct PrintedKernel {
  ir::FusedKernel kernel;  // as printed
  KernelCode code;
};

// Several shape cases of one problem: each has launch lines of its own.
struct PrintedCase {
  const ir::Program* program = nullptr;
  std::vector<PrintedKernel> kernels;
};
std::string assemble(std::span<const PrintedCase> cases);

const SkeletonPrinter& map_skeleton();
const SkeletonPrinter& reduce_skeleton();
const SkeletonPrinter& contract_skeleton();
const SkeletonPrinter& scan_skeleton();

}  // namespace ke::cuda
