// SPDX-License-Identifier: Apache-2.0
//
// Scans of the cuda target, under every layout, run by the host emulation.
#include "target/scan_cases.hpp"

#include <cstring>

#include "target/cuda/emulated_cases.hpp"

namespace ke::cuda {
namespace {

TEST(CudaScan, IsRightUnderEverySchedule) {
  const std::vector<ir::Schedule> schedules{
      {{"threads_per_row", 32}, {"block", 64}, {"in_flight", 1}},
      {{"threads_per_row", 64}, {"width", 1}, {"in_flight", 2}},
      {{"threads_per_row", 128}, {"width", 2}, {"in_flight", 4}},
      {{"columns", 1}, {"block", 32}, {"in_flight", 4}}};
  expect_emulated(target::scan_cases({129}, schedules));
  expect_emulated(target::scan_cases({3, 512}, {{}, {{"threads_per_row", 64}}}));
}

// Equal terms are rounded the same way at each addition: a sum carried in float would drift by
// hundreds of units in the last place.
TEST(CudaScan, CarriesALongRowWithoutDrift) {
  std::vector<ConformanceCase> cases;
  for (ConformanceCase& one : target::scan_cases({8192}, {{{"threads_per_row", 64}}})) {
    if (!one.name.starts_with("sum") && !one.name.starts_with("columns")) continue;
    const float same = 1.1f;
    for (size_t at = 0; at < one.inputs[0].size(); at += sizeof same) {
      std::memcpy(one.inputs[0].data() + at, &same, sizeof same);
    }
    one.relative = 5e-7;
    one.of_largest = 0;
    cases.push_back(std::move(one));
  }
  ASSERT_EQ(cases.size(), 2u);
  expect_emulated(cases);
}

}  // namespace
}  // namespace ke::cuda
