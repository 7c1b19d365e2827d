// SPDX-License-Identifier: Apache-2.0
//
// Scans: their text, what they mean, every refusal, and the kernels they fuse to.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "ir/fuse.hpp"
#include "ir/interpret.hpp"

namespace ke::ir {
namespace {

constexpr const char* kColumns =
    "tensor %0 x: float32[3, 2] input\n"
    "tensor %1 y: float32[3, 2] output\n"
    "inputs %0\n"
    "stage %1[i=3, j=2] = scan sum[i] in float32: load %0[i0, i1]  # aten.cumsum.default\n"
    "outputs %1\n";

// The scan of a flipped tensor, flipped back, and a map of each sum.
constexpr const char* kReverse =
    "tensor %0 x: float32[2, 4] input\n"
    "tensor %1 s: float32[2, 4] intermediate\n"
    "tensor %2 y: float32[2, 4] output\n"
    "inputs %0\n"
    "stage %1[i=2, j=4] = scan sum[j] in float32: load %0[i0, sub(3, i1)]  # aten.cumsum.default\n"
    "stage %2[i=2, j=4] = map: add(load %1[i0, sub(3, i1)], 1.0:float32)  # aten.add.Tensor\n"
    "outputs %2\n";

Program program_of(const char* text) {
  Program program = parse_program(text).value();
  const auto valid = verify(program);
  EXPECT_TRUE(valid.has_value()) << valid.error().to_string();
  return program;
}

std::vector<float> values(const TensorBytes& bytes) {
  std::vector<float> result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

TensorBytes bytes(const std::vector<float>& numbers) {
  TensorBytes result(numbers.size() * sizeof(float));
  std::memcpy(result.data(), numbers.data(), result.size());
  return result;
}

using Floats = std::vector<float>;

TEST(Scan, ParsesWhatItPrints) {
  EXPECT_EQ(print(program_of(kColumns)), kColumns);
  EXPECT_NE(digest_of(program_of(kColumns)), digest_of(program_of(kReverse)));
  std::string unknown = kColumns;
  unknown.replace(unknown.find("sum[i]"), 6, "sum[k]");
  EXPECT_EQ(parse_program(unknown).error().message,
            "line 4 of the program: a scan runs along an axis that the stage does not have");
}

TEST(Scan, KeepsEveryPartialResultAlongItsAxis) {
  const Program program = program_of(kColumns);
  const std::vector<TensorBytes> inputs{bytes({1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(values(interpret(program, inputs).value()[0]), (Floats{1, 2, 4, 6, 9, 12}));
  const auto kernels = realize(program, fuse_greedily(program)).value();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].skeleton, Skeleton::scan);
  EXPECT_EQ(kernels[0].rows, (std::vector<Axis>{{"j", 2}}));
  EXPECT_EQ(kernels[0].stages[0].inner, (std::vector<Axis>{{"i", 3}}));
  EXPECT_EQ(values(interpret(program, kernels, inputs).value()[0]), (Floats{1, 2, 4, 6, 9, 12}));
}

TEST(Scan, LetsAnExtremeBeNanFromThereOn) {
  std::string text = kColumns;
  text.replace(text.find("sum[i]"), 6, "maximum[i]");
  const Program program = program_of(text.c_str());
  const float nan = __builtin_nanf("");
  const std::vector<TensorBytes> inputs{bytes({1, 9, nan, 4, 5, 12})};
  const Floats result = values(interpret(program, inputs).value()[0]);
  EXPECT_EQ(result[1], 9);
  EXPECT_EQ(result[3], 9);
  EXPECT_EQ(result[5], 12);
  EXPECT_NE(result[4], result[4]);
}

TEST(Scan, FusesWithWhatIsFlippedBackAndMadeOfEachSum) {
  const Program program = program_of(kReverse);
  const auto kernels = realize(program, fuse_greedily(program)).value();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].skeleton, Skeleton::scan);
  EXPECT_EQ(kernels[0].internals, std::vector<TensorId>{{1}});
  EXPECT_EQ(kernels[0].writes, std::vector<TensorId>{{2}});
  // Both walk x and y from the end of each row.
  EXPECT_EQ(print(*kernels[0].stages[0].body), "load %0[i0, add(mul(i1, -1), 3)]");
  EXPECT_EQ(print(*kernels[0].stages[1].store[1]), "add(mul(i1, -1), 3)");
  const std::vector<TensorBytes> inputs{bytes({1, 2, 3, 4, 10, 20, 30, 40})};
  const Floats expected{11, 10, 8, 5, 101, 91, 71, 41};
  EXPECT_EQ(values(interpret(program, inputs).value()[0]), expected);
  EXPECT_EQ(values(interpret(program, kernels, inputs).value()[0]), expected);
}

TEST(Scan, StartsItsKernelAndIsReadAtItsOwnElement) {
  const auto refusal = [](const char* text, const Plan& plan) {
    return realize(program_of(text), plan).error().to_string();
  };
  const StageId first{0}, second{1};
  std::string shifted = kReverse;
  shifted.replace(shifted.find("%1[i0, sub(3, i1)]"), 18, "%1[i0, minimum(add(i1, 1), 3)]");
  EXPECT_EQ(refusal(shifted.c_str(), {{{Skeleton::scan, {first, second}, {}}}}),
            "kernel 0: stage y reads its scan kernel at another element");
  EXPECT_EQ(fuse_greedily(program_of(shifted.c_str())).kernels.size(), 2u);
  EXPECT_EQ(refusal(kColumns, {{{Skeleton::reduce, {first}, {}}}}),
            "kernel 0: stage y scans outside a scan kernel");
  constexpr const char* kMasked =
      "tensor %0 x: float32[2, 4] input\n"
      "tensor %1 m: float32[2, 4] output\n"
      "tensor %2 y: float32[2, 4] output\n"
      "inputs %0\n"
      "stage %1[i=2, j=4] = map: mul(load %0[i0, i1], 2.0:float32)\n"
      "stage %2[i=2, j=4] = scan sum[j] in float32: load %1[i0, i1]\n"
      "outputs %1, %2\n";
  EXPECT_EQ(refusal(kMasked, {{{Skeleton::scan, {first, second}, {}}}}),
            "kernel 0: stage y scans and is not its kernel's first");
  EXPECT_EQ(fuse_greedily(program_of(kMasked)).kernels.size(), 2u);
}

TEST(Scan, IsRefusedWithASentence) {
  const std::pair<const char*, std::function<void(Stage&)>> cases[] = {
      {"stage y scans along an axis that it does not have", [](Stage& s) { s.scan = 2; }},
      {"stage y both scans and reduces", [](Stage& s) { s.reduction = {{"r", 3}}; }},
      {"stage y scans with something other than a sum, product or extreme",
       [](Stage& s) { s.reduce = ReduceOp::any; }},
      {"stage y scans with something other than a sum, product or extreme",
       [](Stage& s) { s.reduce = ReduceOp::none; }},
      {"stage y accumulates in a dtype that cannot hold its body",
       [](Stage& s) { s.accumulator = DType::int64; }}};
  for (const auto& [message, damage] : cases) {
    Program program = program_of(kColumns);
    damage(program.stages[0]);
    const auto valid = verify(program);
    ASSERT_FALSE(valid.has_value()) << message;
    EXPECT_EQ(valid.error().message, message);
  }
}

}  // namespace
}  // namespace ke::ir
