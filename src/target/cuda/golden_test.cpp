// SPDX-License-Identifier: Apache-2.0
//
// Printed sources as files to be read: tests/data/golden/cuda. KE_UPDATE_GOLDEN=1 rewrites them.
// Where NVRTC is, they are also compiled for two generations, and spill nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/plan.hpp"
#include "target/cuda/compile.hpp"
#include "target/target.hpp"

namespace ke::cuda {
namespace {

struct Golden {
  const char* name;
  const char* program;
  ir::Schedule schedule = {};  // of its only kernel
  bool for_hopper = false;     // alone
};

constexpr const char* kLinearRelu =
    R"(tensor %0 x: float32[1024, 512] input
tensor %1 w: float32[2048, 512] input
tensor %2 b: float32[2048] input
tensor %3 p: float32[1024, 2048] intermediate
tensor %4 y: float32[1024, 2048] output
inputs %0, %1, %2
)"
    "stage %3[i=1024, j=2048] = sum[k=512] in float32: mul(load %0[i0, i2], load "
    "%1[i1, i2])  # aten.addmm.default\n"
    "stage %4[i=1024, j=2048] = map: maximum(add(load %3[i0, i1], load %2[i1]), "
    "0.0:float32)  # aten.relu.default\n"
    "outputs %4\n";

constexpr const char* kLongProduct = R"(tensor %0 x: float32[192, 65536] input
tensor %1 w: float32[65536, 256] input
tensor %2 y: float32[192, 256] output
inputs %0, %1
)"
                                     "stage %2[i=192, j=256] = sum[k=65536] in float32: mul(load "
                                     "%0[i0, i2], load %1[i2, i1])  # aten.mm.default\n"
                                     "outputs %2\n";

constexpr const char* kConvolution =
    R"(tensor %0 x: float32[16, 64, 56, 56] input
tensor %1 w: float32[128, 64, 3, 3] input
tensor %2 y: float32[16, 128, 56, 56] output
inputs %0, %1
)"
    "stage %2[n=16, o=128, i=56, j=56] = sum[c=64, u=3, v=3] in float32: "
    "mul(select(logical_and(logical_and(ge(add(add(i2, i5), -1), 0), lt(add(add(i2, i5), -1), "
    "56)), logical_and(ge(add(add(i3, i6), -1), 0), lt(add(add(i3, i6), -1), 56))), load %0[i0, "
    "i4, add(add(i2, i5), -1), add(add(i3, i6), -1)], 0.0:float32), load %1[i1, i4, i5, i6])  # "
    "aten.convolution.default\n"
    "outputs %2\n";

constexpr const char* kLongSoftmax = R"(tensor %0 x: float32[512, 393216] input
tensor %1 m: float32[512] intermediate
tensor %2 e: float32[512, 393216] intermediate
tensor %3 s: float32[512] intermediate
tensor %4 y: float32[512, 393216] output
inputs %0
stage %1[i=512] = maximum[j=393216] in float32: load %0[i0, i1]  # aten._softmax.default
stage %2[i=512, j=393216] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # aten._softmax.default
stage %3[i=512] = sum[j=393216] in float32: load %2[i0, i1]  # aten._softmax.default
stage %4[i=512, j=393216] = map: div(load %2[i0, i1], load %3[i0])  # aten._softmax.default
outputs %4
)";

const Golden kGoldens[] = {
    {"relu", R"(tensor %0 x: float32[16, 16384] input
tensor %1 y: float32[16, 16384] output
inputs %0
stage %1[i=16, j=16384] = map: maximum(load %0[i0, i1], 0.0:float32)  # aten.relu.default
outputs %1
)"},
    {"column_sums", R"(tensor %0 x: float32[128, 512, 4095] input
tensor %1 y: float32[128, 4095] output
inputs %0
stage %1[i=128, j=4095] = sum[k=512] in float32: load %0[i0, i2, i1]  # aten.sum.dim_IntList
outputs %1
)"},
    {"softmax_cluster", kLongSoftmax, {}, true},
    {"bias_tanh_odd", R"(tensor %0 x: float32[37, 101] input
tensor %1 b: float32[101] input
tensor %2 y: float32[37, 101] output
inputs %0, %1
stage %2[i=37, j=101] = map: tanh(add(load %0[i0, i1], load %1[i1]))  # aten.add.Tensor, aten.tanh
outputs %2
)"},
    {"half_scale", R"(tensor %0 x: float16[64, 4096] input
tensor %1 y: float16[64, 4096] output
inputs %0
stage %1[i=64, j=4096] = map: cast(float16, mul(cast(float32, load %0[i0, i1]), 0.5:float32))  # mul
outputs %1
)"},
    {"softmax", R"(tensor %0 x: float32[4096, 4096] input
tensor %1 m: float32[4096] intermediate
tensor %2 e: float32[4096, 4096] intermediate
tensor %3 s: float32[4096] intermediate
tensor %4 y: float32[4096, 4096] output
inputs %0
stage %1[i=4096] = maximum[j=4096] in float32: load %0[i0, i1]  # aten._softmax.default
stage %2[i=4096, j=4096] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # aten._softmax.default
stage %3[i=4096] = sum[j=4096] in float32: load %2[i0, i1]  # aten._softmax.default
stage %4[i=4096, j=4096] = map: div(load %2[i0, i1], load %3[i0])  # aten._softmax.default
outputs %4
)"},
    {"cumsum", R"(tensor %0 x: float32[2048, 32768] input
tensor %1 y: float32[2048, 32768] output
inputs %0
stage %1[i=2048, j=32768] = scan sum[j] in float32: load %0[i0, i1]  # aten.cumsum.default
outputs %1
)"},
    {"cumsum_reverse_masked",
     R"(tensor %0 x: float32[999, 1500] input
tensor %1 m: boolean[999, 1500] input
tensor %2 s: float32[999, 1500] intermediate
tensor %3 y: float32[999, 1500] output
inputs %0, %1
)"
     "stage %2[i=999, j=1500] = scan sum[j] in float32: mul(load %0[i0, sub(1499, i1)], "
     "cast(float32, load %1[i0, sub(1499, i1)]))  # aten.cumsum.default\n"
     R"(stage %3[i=999, j=1500] = map: load %2[i0, sub(1499, i1)]  # aten.flip.default
outputs %3
)"},
    {"cumprod_columns", R"(tensor %0 x: float32[64, 100, 333] input
tensor %1 y: float32[64, 100, 333] output
inputs %0
stage %1[n=64, i=100, j=333] = scan product[i] in float32: load %0[i0, i1, i2]  # aten.cumprod
outputs %1
)"},
    {"argmax_columns", R"(tensor %0 x: float32[128, 256, 256] input
tensor %1 y: int64[128, 256] output
inputs %0
stage %1[n=128, j=256] = argmax[k=256] in float32: load %0[i0, i2, i1]  # aten.argmax.default
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
)"},
    {"linear_relu", kLinearRelu, {{"tensor_core", 0}}},
    {"linear_relu_tensor", kLinearRelu, {{"tensor_core", 1}}, true},
    {"long_product_split", kLongProduct, {}, true},
    {"convolution_tensor", kConvolution, {{"tensor_core", 1}}, true},
    {"half_product",
     R"(tensor %0 x: bfloat16[512, 256] input
tensor %1 w: bfloat16[256, 384] input
tensor %2 p: float32[512, 384] intermediate
tensor %3 y: bfloat16[512, 384] output
inputs %0, %1
)"
     "stage %2[i=512, j=384] = sum[k=256] in float32: mul(cast(float32, load "
     "%0[i0, i2]), cast(float32, load %1[i2, i1]))  # aten.mm.default\n"
     "stage %3[i=512, j=384] = map: cast(bfloat16, load %2[i0, i1])  # aten.mm\n"
     "outputs %3\n",
     {{"tensor_core", 1}},
     true}};

std::string printed(const Golden& golden) {
  const auto program = ir::parse_program(golden.program);
  EXPECT_TRUE(program) << program.error().to_string();
  ir::Plan plan = ir::fuse_greedily(*program);
  plan.kernels.front().schedule = golden.schedule;
  const auto kernels = ir::realize(*program, plan);
  EXPECT_TRUE(kernels.has_value());
  const auto source = find_target("cuda")->make()->print(*program, *kernels, {});
  EXPECT_TRUE(source) << source.error().to_string();
  return source.value_or("");
}

void expect_golden(const std::string& name, const std::string& source) {
  SCOPED_TRACE(name);
  const std::filesystem::path folder = KE_SOURCE_DIR "/tests/data/golden/cuda";
  const std::filesystem::path path = folder / (name + ".cu");
  if (getenv("KE_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(folder);
    std::ofstream(path) << source;
  }
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(source, expected.str()) << "KE_UPDATE_GOLDEN=1 rewrites it";
}

TEST(CudaTarget, PrintsItsGoldenSources) {
  for (const Golden& golden : kGoldens) expect_golden(golden.name, printed(golden));
}

TEST(CudaTarget, CompilesItsGoldenSourcesWithoutSpills) {
  const auto path = find_nvrtc();
  if (!path) GTEST_SKIP() << path.error().message;
  const auto nvrtc = Nvrtc::load(*path);
  ASSERT_TRUE(nvrtc) << nvrtc.error().to_string();
  for (const Golden& golden : kGoldens) {
    for (const char* architecture : {"sm_80", "sm_90a"}) {
      if (golden.for_hopper && architecture != std::string_view("sm_90a")) continue;
      SCOPED_TRACE(fmt::format("{} for {}", golden.name, architecture));
      std::string log;
      const auto package = compile_package(*nvrtc, printed(golden), architecture, {}, log);
      ASSERT_TRUE(package) << package.error().to_string();
      EXPECT_FALSE(package->resources.empty());
      for (const target::KernelResources& kernel : package->resources) {
        EXPECT_EQ(kernel.spill_bytes, 0) << log;
        EXPECT_EQ(kernel.stack_bytes, 0) << log;
        EXPECT_GT(kernel.registers, 0) << log;
      }
    }
  }
}

TEST(CudaTarget, PrintsOneSourceForSeveralCases) {
  std::vector<ir::Program> programs;
  for (const auto& [rows, columns] : {std::pair{1024, 64}, {1, 1}, {0, 64}}) {
    auto program = ir::parse_program(fmt::format(R"(tensor %0 x: float32[{0}, {1}] input
tensor %1 b: float32[1] input
tensor %2 s: float32[{0}] intermediate
tensor %3 y: float32[{0}] output
inputs %0, %1
stage %2[i={0}] = sum[j={1}] in float32: load %0[i0, i1]  # aten.sum.dim_IntList
stage %3[i={0}] = map: add(load %2[i0], load %1[0])  # aten.add.Tensor
outputs %3
)",
                                                 rows, columns));
    ASSERT_TRUE(program) << program.error().to_string();
    programs.push_back(std::move(*program));
  }
  std::vector<std::vector<ir::FusedKernel>> kernels;
  std::vector<CaseKernels> cases;
  for (const ir::Program& program : programs) {
    kernels.push_back(ir::realize(program, ir::fuse_greedily(program)).value());
  }
  for (size_t i = 0; i < programs.size(); ++i) cases.push_back({&programs[i], kernels[i]});
  const auto source = find_target("cuda")->make()->print_cases(cases, {});
  ASSERT_TRUE(source) << source.error().to_string();
  expect_golden("row_sums_of_cases", *source);
  const auto script = target::parse_launch_lines(*source);
  ASSERT_TRUE(script) << script.error().to_string();
  const auto launches = [&](std::vector<int64_t> shape) {
    const int64_t rows = shape[0];
    const auto plan = target::plan_launches(*script, {{std::move(shape), {1}}, {{rows}}});
    return plan ? static_cast<int>(plan->launches.size()) : -1;
  };
  EXPECT_EQ(launches({1024, 64}), 1);
  EXPECT_EQ(launches({1, 1}), 1);
  EXPECT_EQ(launches({0, 64}), 0);
  EXPECT_EQ(launches({7, 7}), -1) << "no case of these shapes";
}

TEST(CudaTarget, SaysWhatItsDecisionsMean) {
  const auto target = find_target("cuda")->make();
  int decisions = 0;
  for (const Golden& golden : kGoldens) {
    const auto program = ir::parse_program(golden.program);
    const auto kernels = ir::realize(*program, ir::fuse_greedily(*program));
    ASSERT_TRUE(kernels);
    for (const ir::FusedKernel& kernel : *kernels) {
      EXPECT_GT(target->estimate_ns(*program, kernel, {}), 0);
      for (const ScheduleChoice& choice : target->choices(*program, kernel, {})) {
        EXPECT_NE(choice.meaning, "") << choice.name;
        EXPECT_EQ(choice.rounds_least.has_value(), choice.name == "terms") << choice.name;
        EXPECT_TRUE(std::is_sorted(choice.values.begin(), choice.values.end())) << choice.name;
        EXPECT_TRUE(std::find(choice.values.begin(), choice.values.end(), choice.preferred) !=
                    choice.values.end())
            << choice.name;
        ++decisions;
      }
    }
  }
  EXPECT_GT(decisions, 0);
}

TEST(CudaCompile, ReadsTheAssemblersLog) {
  const auto found = resources_of(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 42 registers, used 1 barriers, 1024 bytes smem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Used 99999999999999999999 registers\nnoise 7 registers'\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (target::KernelResources{"first", 42, 16, 12, 1024}));
  EXPECT_EQ(found[1], (target::KernelResources{"second", 7, 0, 0, 0}));
  EXPECT_TRUE(resources_of("Used 3 registers\n").empty());
}

TEST(DevicePackage, IsReadBackAndRefusedWhenDamaged) {
  const target::DevicePackage package{"sm_90a",
                                      "// ke:launch k grid=(1) block=(1) args=()\n",
                                      {{"k", 8, 0, 0, 0}},
                                      std::string("\x7f"
                                                  "ELF\0\n\xff",
                                                  7)};
  const std::string bytes = target::encode_package(package);
  const auto again = target::decode_package(bytes);
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->code, package.code);
  EXPECT_EQ(again->resources, package.resources);
  EXPECT_EQ(again->launch_lines, package.launch_lines);
  EXPECT_EQ(target::decode_package("").error().message,
            "the compiled code is no device package: its first line is another");
  EXPECT_EQ(target::decode_package(bytes.substr(0, bytes.size() - 8)).error().message,
            "the compiled code is no device package: its description does not end");
  EXPECT_EQ(target::decode_package(bytes.substr(0, bytes.size() - 7)).error().message,
            "the compiled code is no device package: its code is no ELF file");
  for (size_t at = 0; at + 7 < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    (void)target::decode_package(damaged);  // an error or another package, never the end
  }
}

TEST(Nvrtc, IsNamedByAFileThatExists) {
  const char* before = getenv("KE_NVRTC");
  const std::string kept = before == nullptr ? "" : before;
  setenv("KE_NVRTC", "/nowhere/libnvrtc.so", 1);
  const auto missing = find_nvrtc();
  setenv("KE_NVRTC", KE_SOURCE_DIR "/README.md", 1);
  const auto other = find_nvrtc();
  if (before == nullptr) {
    unsetenv("KE_NVRTC");
  } else {
    setenv("KE_NVRTC", kept.c_str(), 1);
  }
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "KE_NVRTC names /nowhere/libnvrtc.so, which is no file; name libnvrtc.so there");
  ASSERT_TRUE(other);
  const auto loaded = Nvrtc::load(*other);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, Errc::unavailable);
}

}  // namespace
}  // namespace ke::cuda
