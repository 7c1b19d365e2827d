// SPDX-License-Identifier: Apache-2.0
//
// Products on tensor cores whose k is split over blocks, under the host emulation: right, and the
// same bits each time.
#include <cstring>

#include "target/cuda/emulated_convolutions.hpp"

namespace ke::cuda {
namespace {

// y = relu(x @ w^T + b), of operands in a type.
std::string split_product(int batch, int m, int n, int k, std::string_view type = "float32") {
  const auto operand = [&](const char* load) {
    return type == "float32" ? std::string(load) : fmt::format("cast(float32, {})", load);
  };
  return fmt::format(R"(tensor %0 x: {4}[{0}, {1}, {3}] input
tensor %1 w: {4}[{0}, {2}, {3}] input
tensor %2 b: float32[{2}] input
tensor %3 p: float32[{0}, {1}, {2}] intermediate
tensor %4 y: float32[{0}, {1}, {2}] output
inputs %0, %1, %2
stage %3[batch={0}, i={1}, j={2}] = sum[k={3}] in float32: mul({5}, {6})  # mm
)"
                     "stage %4[batch={0}, i={1}, j={2}] = map: "
                     "maximum(add(load %3[i0, i1, i2], load %2[i2]), 0.0:float32)  # relu\n"
                     "outputs %4\n",
                     batch, m, n, k, type, operand("load %0[i0, i1, i3]"),
                     operand("load %1[i0, i2, i3]"));
}

ir::Schedule in_parts(int64_t split, int64_t terms = 3) {
  return {{"tensor_core", 1}, {"split_k", split}, {"terms", terms}};
}

std::string source_of(const ConformanceCase& one) {
  const auto kernels = ir::realize(one.program, one.plan);
  EXPECT_TRUE(kernels) << kernels.error().to_string();
  return find_target("cuda")->make()->print(one.program, *kernels, {}).value_or("");
}

void expect_splits(const std::vector<ConformanceCase>& cases) {
  for (const ConformanceCase& one : cases) {
    EXPECT_NE(source_of(one).find("_combine("), std::string::npos) << one.name;
  }
}

// Parts of equal length, and a last one that is shorter, also than what is on its way at a time.
TEST(CudaSplits, ProductsAreRightInAnyNumberOfParts) {
  std::vector<ConformanceCase> cases;
  append(cases, scheduled("three terms", split_product(1, 70, 132, 1030),
                          {in_parts(2), in_parts(3), in_parts(4)}));
  append(cases, scheduled("batches and tiles", split_product(2, 130, 33, 700), {in_parts(2)}));
  append(cases, scheduled("halves", split_product(1, 40, 136, 1100, "float16"), {in_parts(4)}));
  std::vector<ConformanceCase> rounded = scheduled(
      "one term", split_product(1, 60, 50, 1160), {in_parts(2, 1), in_parts(3, 1), in_parts(4, 1)});
  for (ConformanceCase& one : rounded) one.relative = 0, one.of_largest = 2e-3;
  append(cases, std::move(rounded));
  expect_splits(cases);
  expect_emulated(cases);
}

TEST(CudaSplits, ConvolutionsAreGatheredInParts) {
  std::vector<ConformanceCase> cases;
  const Convolution plain{.name = "plain", .batch = 1, .channels = 64, .places = {9, 10}};
  const Convolution half{.name = "halves",
                         .batch = 1,
                         .channels = 64,
                         .places = {9, 10},
                         .type = "float16",
                         .strides = " strides [5760, 1, 640, 64]"};
  append(cases, scheduled("plain", text_of(plain), {in_parts(2)}));
  append(cases, scheduled("halves where they lie", text_of(half), {in_parts(2)}));
  expect_splits(cases);
  expect_emulated(cases);
}

// What has no parts in one slice of k is computed again over all of them.
TEST(CudaSplits, WhatHasNoPartsIsRepairedWhereSumsMeet) {
  std::vector<ConformanceCase> cases =
      scheduled("unusual rows", split_product(1, 40, 50, 600), {in_parts(2)});
  const float unusual[] = {1e30f, __builtin_inff(), __builtin_nanf(""), 1e-30f};
  for (size_t i = 0; i < std::size(unusual); ++i) {
    std::memcpy(cases[0].inputs[0].data() + 4 * ((i * 9 + 2) * 600 + i * 190), &unusual[i], 4);
  }
  expect_splits(cases);
  expect_emulated(cases);
}

TEST(CudaSplits, ResultsAreTheSameBitsEachTime) {
  const std::vector<ConformanceCase> cases =
      scheduled("product", split_product(1, 70, 60, 1030), {in_parts(4)});
  const EmulatedSource source(source_of(cases[0]));
  ASSERT_TRUE(source.ready());
  const auto first = source.run(0, cases[0].program, cases[0].inputs);
  EXPECT_EQ(source.run(0, cases[0].program, cases[0].inputs), first);
}

int64_t preferred_split(int m, int n, int k) {
  const auto program = ir::parse_program(split_product(1, m, n, k));
  const auto kernels = ir::realize(*program, ir::fuse_greedily(*program));
  for (const ScheduleChoice& choice :
       find_target("cuda")->make()->choices(*program, (*kernels)[0], {})) {
    if (choice.name == "split_k") return choice.preferred;
  }
  return 1;
}

// As many blocks as there are multiprocessors, where tiles alone are fewer.
TEST(CudaSplits, FewTilesOfManyTermsPreferToBeSplit) {
  EXPECT_EQ(preferred_split(256, 256, 1 << 18), 32);
  EXPECT_GE(preferred_split(128, 1024, 16384), 8);
  EXPECT_EQ(preferred_split(4096, 4096, 4096), 1);
  EXPECT_EQ(preferred_split(128, 128, 256), 1);
}

}  // namespace
}  // namespace ke::cuda
