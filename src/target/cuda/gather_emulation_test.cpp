// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on tensor cores, whose input is gathered piece by piece, under the host emulation.
#include <cmath>
#include <cstring>

#include "target/cuda/emulated_convolutions.hpp"

namespace ke::cuda {
namespace {

// Whether the printed source gathers, and packs before: a test of tiles would say nothing here.
void expect_gathers(const ConformanceCase& one, bool packs) {
  const auto kernels = ir::realize(one.program, one.plan);
  ASSERT_TRUE(kernels) << kernels.error().to_string();
  const auto source = find_target("cuda")->make()->print(one.program, *kernels, {});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_NE(source->find("ke_copy_16_if"), std::string::npos) << one.name;
  EXPECT_EQ(source->find("imageAt") != std::string::npos, packs) << one.name;
}

TEST(CudaGathers, ConvolutionsOfEveryKindAreRight) {
  std::vector<ConformanceCase> cases;
  const auto add = [&](const Convolution& c, int64_t terms) {
    for (ConformanceCase& one : on_tensor_cores(c, terms)) {
      expect_gathers(one, true);
      cases.push_back(std::move(one));
    }
  };
  add({.name = "plain"}, 3);
  add({.name = "one term", .channels = 24}, 1);
  add({.name = "few channels", .channels = 3, .places = {20, 21}, .kernel = 5, .padding = 2}, 3);
  add({.name = "odd channels", .channels = 13, .outs = 140}, 1);
  add({.name = "many channels", .batch = 1, .channels = 72, .places = {12, 12}}, 3);
  add({.name = "strided", .places = {17, 19}, .kernel = 4, .stride = 2}, 3);
  add({.name = "dilated", .places = {15, 14}, .padding = 2, .dilation = 2}, 3);
  add({.name = "unpadded", .padding = 0}, 3);
  add({.name = "groups", .groups = 3, .channels = 16, .outs = 6}, 3);
  add({.name = "along a line", .channels = 16, .places = {300}, .kernel = 7, .padding = 3}, 3);
  add({.name = "in space", .batch = 1, .places = {5, 6, 7}}, 3);
  add({.name = "transposed", .kernel = 4, .stride = 2, .transposed = true}, 3);
  add({.name = "channels last", .strides = " strides [720, 1, 80, 8]"}, 3);
  add({.name = "halves", .channels = 16, .type = "float16"}, 1);
  expect_emulated(cases);
}

TEST(CudaGathers, HalvesAreTakenFromWhereTheyLie) {
  std::vector<ConformanceCase> cases;
  for (const char* type : {"float16", "bfloat16"}) {
    append(
        cases,
        on_tensor_cores(
            {.name = type, .channels = 16, .type = type, .strides = " strides [1440, 1, 160, 16]"},
            1));
    append(cases, scheduled("product",
                            fmt::format(R"(tensor %0 x: {0}[130, 328] input
tensor %1 w: {0}[140, 328] input
tensor %2 y: float32[130, 140] output
inputs %0, %1
)"
                                        "stage %2[i=130, j=140] = sum[k=328] in "
                                        "float32: mul(cast(float32, load %0[i0, i2]), "
                                        "cast(float32, load %1[i1, i2]))  # mm\n"
                                        "outputs %2\n",
                                        type),
                            {{{"tensor_core", 1}}}));
  }
  for (const ConformanceCase& one : cases) expect_gathers(one, false);
  expect_emulated(cases);
}

// The second image has no parts, the first has.
TEST(CudaGathers, ImagesWithoutPartsAreRepaired) {
  std::vector<ConformanceCase> cases;
  for (const float unusual : {__builtin_inff(), __builtin_nanf(""), 1e30f}) {
    append(cases, on_tensor_cores({.name = fmt::format("with {}", unusual)}, 3));
    std::memcpy(cases.back().inputs[0].data() + 4 * (8 * 90 + 100), &unusual, 4);
  }
  expect_emulated(cases);
}

// Each image has its own magnitude, and so has each output channel.
TEST(CudaGathers, ImagesAreScaled) {
  std::vector<ConformanceCase> cases = on_tensor_cores({.name = "scaled"}, 3);
  for (int operand = 0; operand < 2; ++operand) {
    std::vector<std::byte>& bytes = cases[0].inputs[static_cast<size_t>(operand)];
    const size_t row = operand == 0 ? 8 * 90 : 8 * 9;
    for (size_t i = 0; i < bytes.size() / 4; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      value = std::ldexp(std::fabs(value), static_cast<int>(i / row) * 12 - 20);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
  }
  cases[0].relative = 1e-6;
  cases[0].of_largest = 0;
  expect_emulated(cases);
}

}  // namespace
}  // namespace ke::cuda
