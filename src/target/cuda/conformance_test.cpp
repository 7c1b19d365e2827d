// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the cuda target: compiled by NVRTC (the suite), and run by the host emulation, where
// they must mean what the interpreter says.
#include "target/conformance.hpp"

#include <fmt/format.h>

#include "target/cuda/emulate.hpp"

KE_CONFORMANCE(cuda)

namespace ke::cuda {
namespace {

using target::ConformanceCase;

void expect_emulated(std::span<const ConformanceCase> cases) {
  const auto target = find_target("cuda")->make();
  const target::PrintedTogether printed = target::print_together(*target, cases, {});
  if (printed.source.empty()) return;
  const EmulatedSource source(printed.source);
  if (!source.ready()) return;
  for (size_t i = 0; i < printed.cases.size(); ++i) {
    const ConformanceCase& one = *printed.cases[i];
    SCOPED_TRACE(one.name);
    target::expect_result(one, source.run(i, one.program, one.inputs));
  }
}

TEST(CudaEmulation, EveryOperationMeansWhatTheInterpreterSays) {
  expect_emulated(target::operation_cases());
}

TEST(CudaEmulation, RandomProgramsMeanWhatTheInterpreterSays) {
  const auto target = find_target("cuda")->make();
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    expect_emulated(target::random_cases(*target, seed, 16, {}));
  }
}

}  // namespace
}  // namespace ke::cuda
