// SPDX-License-Identifier: Apache-2.0
//
// Scans of the x86 target, under every layout, compared with the interpreter.
#include "target/scan_cases.hpp"

#include <cstring>

namespace ke::x86 {
namespace {

TEST(X86Scan, IsRightUnderEverySchedule) {
  const auto target = find_target("x86")->make();
  const std::vector<ir::Schedule> schedules{{{"rows_in_lanes", 0}, {"rows_per_task", 2}},
                                            {{"rows_in_lanes", 1}, {"tile", 64}}};
  target::expect_conformance(*target, target::scan_cases({3, 129}, schedules), {});
  target::expect_conformance(*target, target::scan_cases({512}, {{{"streaming", 1}}}), {});
}

// Equal terms are rounded the same way at each addition: a sum carried in float would drift by
// hundreds of units in the last place.
TEST(X86Scan, CarriesALongRowWithoutDrift) {
  std::vector<target::ConformanceCase> cases;
  for (target::ConformanceCase& one : target::scan_cases({8192}, {{}, {{"rows_in_lanes", 1}}})) {
    if (!one.name.starts_with("sum") && !one.name.starts_with("columns")) continue;
    const float same = 1.1f;
    for (size_t at = 0; at < one.inputs[0].size(); at += sizeof same) {
      std::memcpy(one.inputs[0].data() + at, &same, sizeof same);
    }
    one.relative = 3e-7;
    one.of_largest = 0;
    cases.push_back(std::move(one));
  }
  ASSERT_EQ(cases.size(), 4u);
  target::expect_conformance(*find_target("x86")->make(), cases, {});
}

}  // namespace
}  // namespace ke::x86
