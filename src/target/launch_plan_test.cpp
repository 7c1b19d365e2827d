// SPDX-License-Identifier: Apache-2.0
#include "target/launch_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace ke::target {
namespace {

using Kind = LaunchArgument::Kind;

const LaunchShapes kShapes{{{16, 1000}, {}}, {{16, 1000}}};

TEST(LaunchPlan, EvaluatesExpressionsOverShapes) {
  const auto script = parse_launch_lines(
      "// ke:scratch 4 * in0.size + 256\n"
      "// ke:launch scale grid=(ceil_div(n, 256), in0[0], in0.ndim) block=(32 * 8) "
      "shared=min(1024, 8 + 2 * 3) args=(in1, out0, scratch+4*in0[1], in1.size, n - 1, scratch)\n"
      "extern \"C\" __global__ void scale();\n"
      "// ke:tune BLOCK in {32, 64}\n");
  ASSERT_TRUE(script) << script.error().to_string();
  EXPECT_EQ(script->kernels(), std::vector<std::string>{"scale"});
  const auto plan = plan_launches(*script, kShapes);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->scratch_bytes, 64256);
  ASSERT_EQ(plan->launches.size(), 1u);
  const Launch& launch = plan->launches[0];
  EXPECT_EQ(launch.grid, (std::array<int64_t, 3>{63, 16, 2}));
  EXPECT_EQ(launch.block, (std::array<int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(launch.shared_bytes, 14);
  const std::vector<LaunchArgument> expected{{Kind::input, 1},       {Kind::output, 0},
                                             {Kind::scratch, 4000},  {Kind::integer, 1},
                                             {Kind::integer, 15999}, {Kind::scratch, 0}};
  EXPECT_EQ(launch.arguments, expected);
}

TEST(LaunchPlan, ChoosesTheCaseOfTheShapes) {
  const auto script = parse_launch_lines(
      "// ke:case in0[0] == 8 && in0[1] == 1000\n// ke:launch a grid=(1) block=(1) args=()\n"
      "// ke:case in0.ndim == 2 && (in0[0] < 8 || in0[0] >= 16)\n"
      "// ke:launch b grid=(1) block=(1) args=()\n// ke:launch c grid=(0) block=(1) args=()\n");
  ASSERT_TRUE(script) << script.error().to_string();
  const auto plan = plan_launches(*script, kShapes);
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_EQ(plan->launches.size(), 1u) << "a grid of zero is left out";
  EXPECT_EQ(plan->launches[0].kernel, "b");
  const auto none = plan_launches(*script, {{{9, 1000}}, {{9}}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no `// ke:case` line is for tensors of these shapes");
}

struct Refusal {
  const char* line;
  const char* message;
};

constexpr Refusal kBadLines[] = {
    {"launch",
     "the source has no `// ke:launch NAME grid=(…) block=(…) args=(…)` line, so nothing "
     "would be launched"},
    {"launch 3 grid=(1) block=(1) args=()",
     "line 1: expected the kernel's name, found '3 grid=(1) block=(1)'"},
    {"launch k block=(1) args=()", "line 1: expected grid=(…), found the end of the line"},
    {"launch k grid=(1) args=()", "line 1: expected block=(…), found the end of the line"},
    {"launch k grid=(1) block=(1)", "line 1: expected args=(…), found the end of the line"},
    {"launch k grid=(1,1,1,1) block=(1) args=()",
     "line 1: expected ), found ',1) block=(1) args=('"},
    {"launch k grid=() block=(1) args=()", "line 1: expected a value, found ') block=(1) args=()'"},
    {"launch k grid=(1) grid=(1) block=(1) args=()",
     "line 1: the field grid is unknown or given twice"},
    {"launch k grid=(1) block=(1) args=() stream=(1)",
     "line 1: the field stream is unknown or given twice"},
    {"launch k grid=(x) block=(1) args=()", "line 1: the name x has no value"},
    {"launch k grid=(in0) block=(1) args=()",
     "line 1: in0 is a tensor; its numbers are in0.size, in0.ndim and in0[0]"},
    {"launch k grid=(in0.shape) block=(1) args=()",
     "line 1: in0 is a tensor; its numbers are in0.size, in0.ndim and in0[0]"},
    {"launch k grid=(1) block=(1) args=(in0 + 1)", "line 1: expected ), found '+ 1)'"},
    {"launch k grid=(1) block=(1) args=(99999999999999999999)",
     "line 1: a number is larger than 9223372036854775807"},
    {"scratch 12 x", "line 1: expected the end of the line, found 'x'"},
    {"scratch 1\n// ke:scratch 1", "line 2: scratch is given twice"},
    {"scratch 1\n// ke:case 1", "line 2: a ke:case line follows lines that are for every case"},
};

TEST(LaunchPlan, RefusesEveryLineThatIsNotAsDescribed) {
  for (const Refusal& one : kBadLines) {
    SCOPED_TRACE(one.line);
    const auto script = parse_launch_lines(fmt::format("// ke:{}\n", one.line));
    ASSERT_FALSE(script);
    EXPECT_EQ(script.error().code, Errc::invalid);
    EXPECT_EQ(script.error().to_string(), one.message);
  }
}

constexpr Refusal kBadValues[] = {
    {"grid=(0 - 1) block=(1) args=()", "line 1: grid of -1: it must be 0 to 2147483647"},
    {"grid=(1, 65536) block=(1) args=()", "line 1: grid of 65536: it must be 0 to 65535"},
    {"grid=(1) block=(0) args=()", "line 1: block of 0: it must be 1 to 1024"},
    {"grid=(1) block=(1, 1, 65) args=()", "line 1: block of 65: it must be 1 to 64"},
    {"grid=(1) block=(1024, 2) args=()",
     "line 1: a block of 2048 threads: at most 1024 are possible"},
    {"grid=(1) block=(1) shared=999999 args=()",
     "line 1: shared of 999999: it must be 0 to 232448"},
    {"grid=(n / (in0[0] - 16)) block=(1) args=()",
     "line 1: a division by 0: divisors are positive"},
    {"grid=(9223372036854775807 * 2) block=(1) args=()", "line 1: a value does not fit 64 bits"},
    {"grid=(1) block=(1) args=(in2)", "line 1: there is no tensor in2; there are 2"},
    {"grid=(1) block=(1) args=(out1.size)", "line 1: there is no tensor out1; there are 1"},
    {"grid=(in1[0]) block=(1) args=()", "line 1: in1 has 0 dimensions, so there is no [0]"},
    {"grid=(1) block=(1) args=(scratch+1)", "line 1: scratch offset of 1: it must be 0 to 0"},
};

TEST(LaunchPlan, RefusesWhatNoDeviceTakes) {
  for (const Refusal& one : kBadValues) {
    SCOPED_TRACE(one.line);
    const auto script = parse_launch_lines(fmt::format("// ke:launch k {}\n", one.line));
    ASSERT_TRUE(script) << script.error().to_string();
    const auto plan = plan_launches(*script, kShapes);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().to_string(), one.message);
  }
}

TEST(LaunchPlan, BoundsWhatItReads) {
  const std::string deep = std::string(5000, '(') + "1" + std::string(5000, ')');
  const auto nested = parse_launch_lines("// ke:scratch " + deep);
  ASSERT_FALSE(nested);
  EXPECT_EQ(nested.error().to_string(), "line 1 is longer than 8192 bytes");
  const auto shallow = parse_launch_lines("// ke:scratch " + deep.substr(4900, 300));
  ASSERT_FALSE(shallow);
  EXPECT_EQ(shallow.error().to_string(), "line 1: an expression is nested too deeply");
  std::string many, sum = "1";
  for (int i = 0; i < 5000; ++i) many += "// ke:launch k grid=(1) block=(1) args=()\n";
  EXPECT_FALSE(parse_launch_lines(many));
  for (int i = 0; i < 1500; ++i) sum += "+1";
  EXPECT_FALSE(parse_launch_lines("// ke:scratch " + sum));
}

// Damaged lines are refused or mean something, and never end the process.
TEST(LaunchPlan, SurvivesDamagedText) {
  const std::string good =
      "// ke:case in0[0] == 16\n// ke:scratch 4 * in0.size\n"
      "// ke:launch k grid=(ceil_div(n, 256), 1) block=(256) shared=8 args=(in0, scratch+4, n)\n";
  const std::string signs = "()[]{}=+-*/%<>&|.,0123456789ino \n\t\x01\xff";
  int understood = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    Rng rng(seed);
    std::string text = good;
    for (int edits = 0; edits <= static_cast<int>(seed % 4); ++edits) {
      text[static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())))] =
          signs[static_cast<size_t>(rng.below(static_cast<int64_t>(signs.size())))];
    }
    const auto script = parse_launch_lines(text);
    if (script && plan_launches(*script, kShapes)) ++understood;
  }
  EXPECT_GT(understood, 0);
  EXPECT_LT(understood, 4000);
}

}  // namespace
}  // namespace ke::target
