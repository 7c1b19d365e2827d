// SPDX-License-Identifier: Apache-2.0
//
// Printed sources as files to be read: tests/data/golden/x86. KE_UPDATE_GOLDEN=1 rewrites them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/plan.hpp"
#include "target/target.hpp"

namespace ke {
namespace {

struct Golden {
  const char* name;
  const char* program;
};

const Golden kGoldens[] = {
    {"relu", R"(tensor %0 x: float32[16, 16384] input
tensor %1 y: float32[16, 16384] output
inputs %0
stage %1[i=16, j=16384] = map: maximum(load %0[i0, i1], 0.0:float32)  # aten.relu.default
outputs %1
)"},
    {"bias_tanh_odd", R"(tensor %0 x: float32[37, 101] input
tensor %1 b: float32[101] input
tensor %2 y: float32[37, 101] output
inputs %0, %1
stage %2[i=37, j=101] = map: tanh(add(load %0[i0, i1], load %1[i1]))  # aten.add.Tensor, aten.tanh
outputs %2
)"},
    {"int64_max", R"(tensor %0 x: int64[1000] input
tensor %1 y: int64[] output
inputs %0
stage %1[] = maximum[i=1000] in int64: load %0[i0]  # aten.max.default
outputs %1
)"},
    {"softmax", R"(tensor %0 x: float32[16, 16384] input
tensor %1 m: float32[16] intermediate
tensor %2 e: float32[16, 16384] intermediate
tensor %3 s: float32[16] intermediate
tensor %4 y: float32[16, 16384] output
inputs %0
stage %1[i=16] = maximum[j=16384] in float32: load %0[i0, i1]  # aten._softmax.default
stage %2[i=16, j=16384] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # aten._softmax.default
stage %3[i=16] = sum[j=16384] in float32: load %2[i0, i1]  # aten._softmax.default
stage %4[i=16, j=16384] = map: div(load %2[i0, i1], load %3[i0])  # aten._softmax.default
outputs %4
)"},
    {"cumsum", R"(tensor %0 x: float32[128, 4000] input
tensor %1 y: float32[128, 4000] output
inputs %0
stage %1[i=128, j=4000] = scan sum[j] in float32: load %0[i0, i1]  # aten.cumsum.default
outputs %1
)"},
    {"cumprod_columns", R"(tensor %0 x: float32[64, 100, 333] input
tensor %1 y: float32[64, 100, 333] output
inputs %0
stage %1[n=64, i=100, j=333] = scan product[i] in float32: load %0[i0, i1, i2]  # aten.cumprod
outputs %1
)"},
    {"argmax_rows_in_lanes", R"(tensor %0 x: float32[16, 256, 256] input
tensor %1 y: int64[16, 256] output
inputs %0
stage %1[n=16, j=256] = argmax[k=256] in float32: load %0[i0, i2, i1]  # aten.argmax.default
outputs %1
)"},
    {"mse_split", R"(tensor %0 x: float32[128, 4096] input
tensor %1 t: float32[128, 4096] input
tensor %2 s: float32[] intermediate
tensor %3 y: float32[] output
inputs %0, %1
)"
                  "stage %2[] = sum[i=128, j=4096] in float32: "
                  "pow(sub(load %0[i0, i1], load %1[i0, i1]), 2.0:float32)  # aten.mse_loss\n"
                  R"(stage %3[] = map: div(load %2[], 524288.0:float32)  # aten.mse_loss
outputs %3
)"}};

std::string printed(const char* text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.has_value());
  const auto kernels = ir::realize(*program, ir::fuse_greedily(*program));
  EXPECT_TRUE(kernels.has_value());
  MachineProfile machine;  // a fixed one: goldens do not depend on where they are made
  machine.threads = 2;
  const auto source = find_target("x86")->make()->print(*program, *kernels, machine);
  EXPECT_TRUE(source.has_value());
  return source.value_or("");
}

void expect_golden(const std::string& name, const std::string& source) {
  SCOPED_TRACE(name);
  const std::filesystem::path folder = KE_SOURCE_DIR "/tests/data/golden/x86";
  const std::filesystem::path path = folder / (name + ".cpp");
  if (getenv("KE_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << source;
  }
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(source, expected.str()) << "KE_UPDATE_GOLDEN=1 rewrites it";
}

TEST(X86Target, PrintsItsGoldenSources) {
  for (const Golden& golden : kGoldens) expect_golden(golden.name, printed(golden.program));
}

// A sum over rows, which have 64 elements, one or none.
std::string row_sums(int rows, int columns) {
  return fmt::format(R"(tensor %0 x: float32[{0}, {1}] input
tensor %1 b: float32[1] input
tensor %2 s: float32[{0}] intermediate
tensor %3 y: float32[{0}] output
inputs %0, %1
stage %2[i={0}] = sum[j={1}] in float32: load %0[i0, i1]  # aten.sum.dim_IntList
stage %3[i={0}] = map: add(load %2[i0], load %1[0])  # aten.add.Tensor
outputs %3
)",
                     rows, columns);
}

TEST(X86Target, PrintsOneSourceForSeveralCases) {
  std::vector<ir::Program> programs;
  for (const auto& [rows, columns] : {std::pair{1024, 64}, {1, 1}, {0, 64}}) {
    auto program = ir::parse_program(row_sums(rows, columns));
    ASSERT_TRUE(program) << program.error().to_string();
    programs.push_back(std::move(*program));
  }
  std::vector<std::vector<ir::FusedKernel>> kernels;
  std::vector<CaseKernels> cases;
  for (const ir::Program& program : programs) {
    kernels.push_back(ir::realize(program, ir::fuse_greedily(program)).value());
  }
  for (size_t i = 0; i < programs.size(); ++i) cases.push_back({&programs[i], kernels[i]});
  MachineProfile machine;
  machine.threads = 2;
  const auto target = find_target("x86")->make();
  const auto source = target->print_cases(cases, machine);
  ASSERT_TRUE(source) << source.error().to_string();
  expect_golden("row_sums_of_cases", *source);
  EXPECT_EQ(target->print_cases({cases.data(), 1}, machine).value(),
            target->print(programs[0], kernels[0], machine).value());
}

TEST(X86Target, SaysWhatItsDecisionsMean) {
  MachineProfile machine;
  machine.threads = 2;
  const auto target = find_target("x86")->make();
  int decisions = 0;
  for (const Golden& golden : kGoldens) {
    const auto program = ir::parse_program(golden.program);
    const auto kernels = ir::realize(*program, ir::fuse_greedily(*program));
    ASSERT_TRUE(kernels);
    for (const ir::FusedKernel& kernel : *kernels) {
      for (const ScheduleChoice& choice : target->choices(*program, kernel, machine)) {
        EXPECT_NE(choice.meaning, "") << choice.name;
        ++decisions;
      }
    }
  }
  EXPECT_GT(decisions, 0);
}

TEST(X86Target, RefusesFlagsOutsideTheAllowList) {
  const auto target = find_target("x86")->make();
  const auto recipe = target->recipe("// ke:flags -ffast-math -fplugin=evil.so\n");
  ASSERT_FALSE(recipe.has_value());
  EXPECT_EQ(recipe.error().code, Errc::refused);
  EXPECT_TRUE(target->recipe("// ke:flags -ffast-math\n").has_value());
}

}  // namespace
}  // namespace ke
