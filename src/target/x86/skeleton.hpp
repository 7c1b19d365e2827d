// SPDX-License-Identifier: Apache-2.0
//
// What the skeletons of the x86 target share: each is one file that knows its schedule choices,
// their cost and how a kernel is printed. emit.cpp assembles their code into a translation unit.
//
// Printed code lives in one file without headers but <stdint.h> and kernel.h. Element vectors are
// called by type and lanes: f32x8, f64x4, i32x8, i64x8 (see helpers.hpp). ke_launch declares one
// pointer a tensor, named as the tensor, of its storage type (const for inputs), and
// `char* <kernel>_scratch` when the kernel asks for scratch; KernelCode::launch may use these,
// `context` and nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/machine.hpp"
#include "ir/plan.hpp"
#include "target/schedule.hpp"
#include "target/target.hpp"

namespace ke::x86 {

struct KernelCode {
  std::string functions;          // at file scope, before ke_launch; names start with the kernel's
  std::string launch;             // statements of ke_launch, indented by one level
  std::string schedule;           // the schedule in words, for the header comment
  int64_t scratch_bytes = 0;      // private to this kernel, 64-byte aligned, not kept for others
  std::set<std::string> helpers;  // keys of helpers.hpp that `functions` needs
};

// What printing needs to know, and what it collects. One per kernel.
struct PrintContext {
  const ir::Program& program;
  const MachineProfile& machine;
  const ir::FusedKernel& kernel;
  std::set<std::string> helpers = {};
  int next_name = 0;

  const ir::Tensor& tensor(ir::TensorId id) const { return program.tensor(id); }
  // The C expression of a tensor's base pointer inside a kernel's functions: the tensor's name,
  // unless C++ or the printed code uses that word.
  std::string pointer(ir::TensorId id) const;
  // A name that nothing else in the kernel has: the stem and a number.
  std::string fresh(const std::string& stem);
};

// The argument block of a kernel: a struct of the pointers of everything it reads and writes.
struct ArgumentBlock {
  std::string type;         // "Kernel0SoftmaxArgs"
  std::string variable;     // "kernel0_softmax_arguments", of ke_launch
  std::string declaration;  // "struct Kernel0SoftmaxArgs {\n  const float* x; … };\n"
  std::string initializer;  // "{x, y, kernel0_scratch}"
  std::string unpack;       // statements that open a body(int64_t, void* arg): local pointers
};
ArgumentBlock argument_block(const PrintContext& context, bool with_scratch);

// A statement of ke_launch that fills the arguments, and one that runs function(task, &arguments)
// for every task, by the pool or on the calling thread.
std::string declare_arguments(const ArgumentBlock& block);
std::string launch_tasks(const PrintContext& context, const ArgumentBlock& block,
                         std::string_view function, std::string_view tasks, bool parallel);

using target::chosen;
using target::powers_choice;

// One skeleton. Stateless functions, safe to call from many threads.
struct SkeletonPrinter {
  std::vector<ScheduleChoice> (*choices)(const ir::Program&, const ir::FusedKernel&,
                                         const MachineProfile&);
  double (*estimate_ns)(const ir::Program&, const ir::FusedKernel&, const MachineProfile&);
  // Errc::unavailable with a sentence when this kernel cannot be printed.
  Result<KernelCode> (*print)(PrintContext& context);
};

// The whole translation unit. `kernels` were printed in this order.
struct PrintedKernel {
  const ir::FusedKernel* kernel = nullptr;
  KernelCode code;
};
std::string assemble(const ir::Program& program, std::span<const PrintedKernel> kernels);

// Several shape cases of one problem: each in a namespace of its own, case0 and so on, behind one
// ke_launch that knows them by their inputs' shapes.
struct PrintedCase {
  const ir::Program* program = nullptr;
  std::vector<PrintedKernel> kernels;
};
std::string assemble_cases(std::span<const PrintedCase> cases);

const SkeletonPrinter& map_skeleton();
const SkeletonPrinter& reduce_skeleton();
const SkeletonPrinter& contract_skeleton();
const SkeletonPrinter& scan_skeleton();

}  // namespace ke::x86
