// SPDX-License-Identifier: Apache-2.0
//
// Kernels of the cuda target: compiled by NVRTC (the suite), and run by the host emulation, where
// they must mean what the interpreter says.
#include "target/conformance.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>

#include "target/cuda/emulated_cases.hpp"

KE_CONFORMANCE(cuda)

namespace ke::cuda {
namespace {

TEST(CudaEmulation, EveryOperationMeansWhatTheInterpreterSays) {
  expect_emulated(target::operation_cases());
}

TEST(CudaEmulation, RandomProgramsMeanWhatTheInterpreterSays) {
  const auto target = find_target("cuda")->make();
  std::vector<ConformanceCase> cases;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    append(cases, target::random_cases(*target, seed, 16, {}));
  }
  expect_emulated(cases);
}

std::string softmax(int rows, int columns) {
  return fmt::format(R"(tensor %0 x: float32[{0}, {1}] input
tensor %1 m: float32[{0}] intermediate
tensor %2 e: float32[{0}, {1}] intermediate
tensor %3 s: float32[{0}] intermediate
tensor %4 y: float32[{0}, {1}] output
inputs %0
stage %1[i={0}] = maximum[j={1}] in float32: load %0[i0, i1]  # max
stage %2[i={0}, j={1}] = map: exp(sub(load %0[i0, i1], load %1[i0]))  # exp
stage %3[i={0}] = sum[j={1}] in float32: load %2[i0, i1]  # sum
stage %4[i={0}, j={1}] = map: div(load %2[i0, i1], load %3[i0])  # div
outputs %4
)",
                     rows, columns);
}

const std::vector<ir::Schedule> kRowSchedules{
    {},
    {{"threads_per_row", 1}, {"block", 64}},
    {{"threads_per_row", 8}, {"width", 1}},
    {{"threads_per_row", 32}, {"width", 4}, {"recompute", 0}},
    {{"threads_per_row", 512}, {"keep_row", 0}},
    {{"threads_per_row", 256}, {"width", 8}},
    {{"threads_per_row", 1024}, {"width", 2}},
    {{"threads_per_row", 64}, {"split", 8}, {"recompute", 1}},
    {{"threads_per_row", 128}, {"split", 4}, {"recompute", 0}},
    {{"columns", 1}, {"block", 256}},
    {{"columns", 1}, {"block", 64}, {"split", 4}},
    {{"columns", 1}, {"columns_a_block", 64}, {"block", 128}, {"in_flight", 2}},
    {{"cluster", 2}, {"block", 64}, {"threads_per_row", 32}},
    {{"cluster", 8}, {"block", 64}, {"width", 2}, {"keep_row", 0}, {"recompute", 0}}};

TEST(CudaEmulation, MapsAreRightUnderEverySchedule) {
  std::vector<ir::Schedule> schedules;
  for (const int64_t width : {1, 4}) {
    for (const int64_t items : {1, 2, 8}) {
      schedules.push_back({{"width", width}, {"items", items}, {"block", 64}});
    }
  }
  std::vector<ConformanceCase> cases;
  for (const int columns : {96, 101}) {
    append(cases, scheduled("bias and square",
                            fmt::format(R"(tensor %0 x: float32[37, {0}] input
tensor %1 b: float32[{0}] input
tensor %2 s: float32[37, {0}] output
tensor %3 y: float32[37, {0}] output
inputs %0, %1
stage %2[i=37, j={0}] = map: add(load %0[i0, i1], load %1[i1])  # add
stage %3[i=37, j={0}] = map: mul(load %2[i0, i1], load %0[i0, i1])  # mul
outputs %2, %3
)",
                                        columns),
                            schedules));
  }
  expect_emulated(cases);
}

TEST(CudaEmulation, SoftmaxIsRightUnderEverySchedule) {
  std::vector<ConformanceCase> cases;
  for (const auto& [rows, columns] : {std::pair{9, 129}, {3, 4096}, {2, 4099}}) {
    append(cases, scheduled(fmt::format("softmax {} {}", rows, columns), softmax(rows, columns),
                            kRowSchedules));
  }
  expect_emulated(cases);
}

// Ties and NaN included: the first extreme is the one, whatever threads find it.
TEST(CudaEmulation, ArgmaxIsTheFirstUnderEverySchedule) {
  std::vector<ConformanceCase> cases = scheduled("argmax", R"(tensor %0 x: float32[5, 16, 512] input
tensor %1 y: int64[5] output
inputs %0
stage %1[n=5] = argmax[j=16, k=512] in float32: load %0[i0, i1, i2]  # argmax
outputs %1
)",
                                                 kRowSchedules);
  for (ConformanceCase& one : cases) {
    for (size_t i = 0; i < one.inputs[0].size() / 4; ++i) {
      const float value =
          i % 8192 == 5000 && i > 30000 ? __builtin_nanf("") : static_cast<float>(i * 7919 % 97);
      std::memcpy(one.inputs[0].data() + 4 * i, &value, 4);
    }
  }
  expect_emulated(cases);
}

// Values of 1 and of 16 bytes go from block to block.
TEST(CudaEmulation, ClustersJoinWhateverIsReduced) {
  expect_emulated(scheduled("argmax and any",
                            R"(tensor %0 x: float32[3, 4100] input
tensor %1 p: int64[3] output
tensor %2 a: boolean[3] output
tensor %3 y: float32[3, 4100] output
inputs %0
)"
                            "stage %1[n=3] = argmax[j=4100] in float32: load %0[i0, i1]  # argmax\n"
                            "stage %2[n=3] = any[j=4100] in boolean: gt(load %0[i0, i1], "
                            "3.5:float32)  # any\n"
                            "stage %3[n=3, j=4100] = map: select(load %2[i0], load %0[i0, i1], "
                            "cast(float32, load %1[i0]))  # where\n"
                            "outputs %1, %2, %3\n",
                            kRowSchedules));
}

TEST(CudaEmulation, ColumnsAreReducedUnderEverySchedule) {
  expect_emulated(scheduled("sums over the first axis", R"(tensor %0 x: float32[3, 4096, 40] input
tensor %1 s: float32[3, 40] output
tensor %2 y: float32[3, 40] output
inputs %0
stage %1[n=3, i=40] = sum[j=4096] in float32: load %0[i0, i2, i1]  # sum
stage %2[n=3, i=40] = map: mul(load %1[i0, i1], 0.5:float32)  # mul
outputs %1, %2
)",
                            kRowSchedules));
}

// Equal products minus their maximum are zero, however compilers like to fuse multiplications; and
// equal terms drift away from their sum when they are added one after the other.
TEST(CudaEmulation, RoundsLikeATree) {
  std::vector<ConformanceCase> cases =
      scheduled("products minus their maximum", R"(tensor %0 x: float32[2, 8192] input
tensor %1 m: float32[2] intermediate
tensor %2 y: float32[2, 8192] output
inputs %0
stage %1[i=2] = maximum[j=8192] in float32: mul(load %0[i0, i1], load %0[i0, i1])  # max
stage %2[i=2, j=8192] = map: sub(mul(load %0[i0, i1], load %0[i0, i1]), load %1[i0])  # sub
outputs %2
)",
                kRowSchedules);
  append(cases, scheduled("sum of equal terms", R"(tensor %0 x: float32[8, 16384] input
tensor %1 s: float32[8] output
inputs %0
stage %1[i=8] = sum[j=16384] in float32: load %0[i0, i1]  # sum
outputs %1
)",
                          {{}, {{"threads_per_row", 1}, {"block", 64}}, {{"columns", 1}}}));
  for (ConformanceCase& one : cases) {
    const float same = 1.1f;
    one.relative = 1e-5;
    for (size_t at = 0; at < one.inputs[0].size(); at += sizeof same) {
      std::memcpy(one.inputs[0].data() + at, &same, sizeof same);
    }
  }
  expect_emulated(cases);
}

// Squares of a row with one outlier: whichever thread meets it, what follows must still count.
TEST(CudaEmulation, AddsUpWhatVanishesBesideALargeTerm) {
  std::vector<ConformanceCase> cases =
      scheduled("sum of small terms and a large one", R"(tensor %0 x: float32[8, 16384] input
tensor %1 s: float32[8] intermediate
tensor %2 y: float32[8] output
inputs %0
stage %1[i=8] = sum[j=16384] in float32: load %0[i0, i1]  # sum
stage %2[i=8] = map: mul(load %1[i0], 2.0:float32)  # mul
outputs %2
)",
                kRowSchedules);
  append(cases, scheduled("kept in registers", R"(tensor %0 x: float32[8, 16384] input
tensor %1 m: float32[8] intermediate
tensor %2 s: float32[8] output
inputs %0
stage %1[i=8] = minimum[j=16384] in float32: load %0[i0, i1]  # min
stage %2[i=8] = sum[j=16384] in float32: maximum(load %0[i0, i1], load %1[i0])  # sum
outputs %2
)",
                          kRowSchedules));
  for (ConformanceCase& one : cases) target::plant_large_terms(one, 16384);
  expect_emulated(cases);
}

std::string product(int batch, int m, int n, int k, std::string_view left, std::string_view right) {
  return fmt::format(R"(tensor %0 x: float32[{0}, {1}, {3}]{4} input
tensor %1 w: float32[{0}, {2}, {3}]{5} input
tensor %2 b: float32[{2}] input
tensor %3 p: float32[{0}, {1}, {2}] intermediate
tensor %4 y: float32[{0}, {1}, {2}] output
inputs %0, %1, %2
)"
                     "stage %3[batch={0}, i={1}, j={2}] = sum[k={3}] in float32: "
                     "mul(load %0[i0, i1, i3], load %1[i0, i2, i3])  # mm\n"
                     "stage %4[batch={0}, i={1}, j={2}] = map: "
                     "maximum(add(load %3[i0, i1, i2], load %2[i2]), 0.0:float32)  # relu\n"
                     "outputs %4\n",
                     batch, m, n, k, left, right);
}

const std::vector<ir::Schedule> kProductSchedules{
    {{"tensor_core", 0}},
    {{"block_m", 32}, {"block_n", 64}, {"block_k", 8}, {"stages", 1}},
    {{"block_m", 128}, {"block_n", 128}, {"tile_m", 8}, {"tile_n", 8}},
    {{"block_m", 16}, {"block_n", 16}, {"block_k", 32}},
    {{"block_m", 64}, {"block_n", 32}, {"tile_m", 8}, {"split_k", 4}},
    {{"tensor_core", 1}}};

// Operands as memory has them: k next to each other, or rows; extents with and without a rest.
TEST(CudaEmulation, ProductsAreRightUnderEverySchedule) {
  std::vector<ConformanceCase> cases;
  const auto add = [&](int batch, int m, int n, int k, std::string_view left,
                       std::string_view right) {
    append(cases, scheduled(fmt::format("product {} {} {} {}", batch, m, n, k),
                            product(batch, m, n, k, left, right), kProductSchedules));
  };
  add(2, 36, 132, 40, "", "");
  add(1, 33, 65, 71, "", "");
  add(2, 40, 52, 64, " strides [2560, 1, 40]", " strides [3328, 1, 52]");
  add(1, 20, 30, 600, "", " strides [18000, 1, 30]");
  expect_emulated(cases);
}

// More slices of k than shared memory holds, several tiles a batch, and a rest everywhere.
TEST(CudaEmulation, TensorCoresMultiplyManySlicesAndTiles) {
  std::vector<ConformanceCase> cases;
  const auto add = [&](int m, int n, int k, std::string_view left, std::string_view right) {
    append(cases, scheduled(fmt::format("product {} {} {}", m, n, k),
                            product(2, m, n, k, left, right), {{{"tensor_core", 1}}}));
  };
  add(130, 260, 330, "", "");
  add(129, 257, 65, "", "");
  add(132, 136, 513, " strides [67716, 1, 132]", " strides [69768, 1, 136]");
  expect_emulated(cases);
}

// Rows that have no fp16 parts: too wide a range, too large, not finite.
TEST(CudaEmulation, TensorCoresRepairWhatHasNoParts) {
  std::vector<ConformanceCase> cases = scheduled(
      "product of unusual rows", product(1, 140, 150, 70, "", ""), {{{"tensor_core", 1}}});
  const float unusual[] = {1e30f,  -3e-39f, __builtin_inff(), __builtin_nanf(""), -1.5e9f,
                           1e-30f, 0.0f,    -__builtin_inff()};
  for (int operand = 0; operand < 2; ++operand) {
    for (size_t i = 0; i < std::size(unusual); ++i) {
      const size_t at = (i * 17 + 5) * 70 + i;
      std::memcpy(cases[0].inputs[static_cast<size_t>(operand)].data() + 4 * at, &unusual[i], 4);
    }
  }
  std::memset(cases[0].inputs[0].data() + size_t{4} * 70 * 2, 0, size_t{4} * 70);  // a row of zeros
  expect_emulated(cases);
}

// Every row and column has its own magnitude: what is lost is small to each of them.
TEST(CudaEmulation, TensorCoresScaleRows) {
  std::vector<ConformanceCase> cases =
      scheduled("product of scaled rows", R"(tensor %0 x: float32[40, 200] input
tensor %1 w: float32[48, 200] input
tensor %2 y: float32[40, 48] output
inputs %0, %1
stage %2[i=40, j=48] = sum[k=200] in float32: mul(load %0[i0, i2], load %1[i1, i2])  # mm
outputs %2
)",
                {{{"tensor_core", 1}}});
  Rng rng(5);
  for (int operand = 0; operand < 2; ++operand) {
    for (size_t i = 0; i < cases[0].inputs[static_cast<size_t>(operand)].size() / 4; ++i) {
      const float value =
          std::ldexp(1 + static_cast<float>(rng.uniform()), static_cast<int>(i / 200) - 20);
      std::memcpy(cases[0].inputs[static_cast<size_t>(operand)].data() + 4 * i, &value, 4);
    }
  }
  cases[0].relative = 1e-6;
  cases[0].of_largest = 0;
  expect_emulated(cases);
}

std::string half_product(std::string_view type) {
  return fmt::format(R"(tensor %0 x: {0}[130, 330] input
tensor %1 w: {0}[330, 140] input
tensor %2 p: float32[130, 140] output
inputs %0, %1
)"
                     "stage %2[i=130, j=140] = sum[k=330] in float32: mul(cast(float32, load "
                     "%0[i0, i2]), cast(float32, load %1[i2, i1]))  # mm\n"
                     "outputs %2\n",
                     type);
}

TEST(CudaEmulation, TensorCoresTakeHalvesAsTheyAre) {
  std::vector<ConformanceCase> cases;
  for (const char* type : {"float16", "bfloat16"}) {
    append(cases, scheduled(type, half_product(type), {{{"tensor_core", 1}}}));
  }
  expect_emulated(cases);
}

TEST(CudaEmulation, OneTermRoundsOperandsToElevenBits) {
  std::vector<ConformanceCase> cases =
      scheduled("product", product(1, 130, 140, 200, "", ""), {{{"tensor_core", 1}, {"terms", 1}}});
  for (ConformanceCase& one : cases) {
    one.relative = 0;
    one.of_largest = 2e-3;
  }
  expect_emulated(cases);
}

TEST(CudaEmulation, ConvolutionsReadThroughTheirPadding) {
  expect_emulated(scheduled("convolution",
                            R"(tensor %0 x: float32[2, 5, 9, 9] input
tensor %1 w: float32[12, 5, 3, 3] input
tensor %2 y: float32[2, 12, 9, 9] output
inputs %0, %1
)"
                            "stage %2[n=2, o=12, i=9, j=9] = sum[c=5, u=3, v=3] in "
                            "float32: mul(select(logical_and(logical_and(ge(add(add("
                            "i2, i5), -1), 0), lt(add(add(i2, i5), -1), 9)), "
                            "logical_and(ge(add(add(i3, i6), -1), 0), lt(add(add("
                            "i3, i6), -1), 9))), load %0[i0, i4, add(add(i2, i5), "
                            "-1), add(add(i3, i6), -1)], 0.0:float32), load %1[i1, "
                            "i4, i5, i6])  # conv\noutputs %2\n",
                            kProductSchedules));
}

}  // namespace
}  // namespace ke::cuda
