// SPDX-License-Identifier: Apache-2.0
//
// Plans against their programs: realized kernels compute what the program means, on random programs
// and for every neighbour of the greedy plan; refusals; and plans as JSON.
#include "ir/plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/json.hpp"
#include "ir/random_program.hpp"

namespace ke::ir {
namespace {

bool is_nan(DType dtype, const std::byte* at) {
  if (dtype == DType::float64) {
    double value;
    std::memcpy(&value, at, sizeof(value));
    return std::isnan(value);
  }
  uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(bytes_of(dtype)));
  if (dtype == DType::float32) return (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t infinity = dtype == DType::float16 ? 0x7c00u : 0x7f80u;
  return is_floating(dtype) && (bits & 0x7fffu) > infinity;
}

// Bitwise, but any NaN equals any other.
bool same_bytes(DType dtype, const TensorBytes& a, const TensorBytes& b) {
  if (a.size() != b.size()) return false;
  const auto size = static_cast<size_t>(bytes_of(dtype));
  for (size_t i = 0; i < a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    if (!is_nan(dtype, &a[i]) || !is_nan(dtype, &b[i])) return false;
  }
  return true;
}

void expect_same_meaning(const Program& program, const Plan& plan,
                         const std::vector<TensorBytes>& inputs,
                         const std::vector<TensorBytes>& expected) {
  SCOPED_TRACE(print(plan));
  const auto kernels = realize(program, plan);
  ASSERT_TRUE(kernels.has_value()) << kernels.error().to_string();
  const auto found = interpret(program, *kernels, inputs);
  ASSERT_TRUE(found.has_value()) << found.error().to_string();
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(same_bytes(program.tensor(program.outputs[i]).dtype, (*found)[i], expected[i]))
        << "output " << i;
  }
}

TEST(Plan, RealizedKernelsComputeWhatTheProgramMeans) {
  int kernels = 0, stages = 0, neighbours = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const Program program = random_program(rng);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(program)));
    const auto valid = verify(program);
    ASSERT_TRUE(valid.has_value()) << valid.error().to_string();
    const std::vector<TensorBytes> inputs = random_inputs(program, rng, seed % 2 == 0);
    const auto expected = interpret(program, inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
    const Plan plan = fuse_greedily(program);
    const auto legal = verify(program, plan);
    ASSERT_TRUE(legal.has_value()) << legal.error().to_string() << "\n" << print(plan);
    expect_same_meaning(program, plan, inputs, *expected);
    kernels += static_cast<int>(plan.kernels.size());
    stages += static_cast<int>(program.stages.size());
    for (const Plan& neighbour : fusion_neighbours(program, plan)) {
      expect_same_meaning(program, neighbour, inputs, *expected);
      ++neighbours;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_LT(kernels, stages);
  EXPECT_GT(neighbours, 1000);
}

// x -> e = exp(x) -> s = sum of rows of e -> y = e / s, and z = sum of columns of x.
Program example() {
  return parse_program(
             "tensor %0 x: float32[4, 6] input\n"
             "tensor %1 e: float32[4, 6] intermediate\n"
             "tensor %2 s: float32[4] intermediate\n"
             "tensor %3 y: float32[4, 6] output\n"
             "tensor %4 z: float32[6] output\n"
             "inputs %0\n"
             "stage %1[a=4, b=6] = map: exp(load %0[i0, i1])\n"
             "stage %2[a=4] = sum[r=6] in float32: load %1[i0, i1]\n"
             "stage %3[a=4, b=6] = map: div(load %1[i0, i1], load %2[i0])\n"
             "stage %4[b=6] = sum[r=4] in float32: load %0[i1, i0]\n"
             "outputs %3, %4\n")
      .value();
}

KernelPlan kernel(Skeleton skeleton, std::vector<int> stages) {
  KernelPlan plan{skeleton, {}, {}};
  for (int stage : stages) plan.stages.push_back({stage});
  return plan;
}

TEST(Plan, IsRefusedWithASentence) {
  using enum Skeleton;
  struct Case {
    std::string message;
    Plan plan;
  };
  const KernelPlan z = kernel(reduce, {3});
  const Case cases[] = {
      {"kernel 0 has no stage", {{kernel(map, {})}}},
      {"kernel 0 names stage 9, which does not exist", {{kernel(map, {9})}}},
      {"kernel 0 names stage -1, which does not exist", {{kernel(map, {-1})}}},
      {"stage z is in two kernels", {{z, z}}},
      {"stage s is out of program order", {{kernel(reduce, {2, 1})}}},
      {"output z is computed by no kernel", {{kernel(reduce, {1, 2})}}},
      {"kernel 0: stage s reduces and is in no kernel", {{kernel(map, {2}), z}}},
      {"kernel 0 reads s before it is computed", {{kernel(map, {2}), kernel(reduce, {1}), z}}},
      {"kernel 0: stage s reduces inside a map kernel", {{kernel(map, {1}), kernel(map, {2}), z}}},
      {"kernel 0: stage y is in a reduce kernel that reduces nothing",
       {{kernel(reduce, {2}), kernel(reduce, {1}), z}}},
      {"kernel 0: stage y does not fit a scan kernel, whose first stage alone scans",
       {{kernel(scan, {2}), kernel(reduce, {1}), z}}},
      {"kernel 0: stage s is no product of two factors over m, n and k",
       {{kernel(contract, {1}), kernel(map, {2}), z}}},
      {"kernel 0: stage y does not fit a contract kernel, whose first stage alone reduces",
       {{kernel(contract, {2}), kernel(reduce, {1}), z}}},
      {"kernel 0: stage z does not run over the rows of its kernel", {{kernel(reduce, {1, 2, 3})}}},
      {"kernel 1: stage y has other extents than its map kernel",
       {{kernel(reduce, {1}), kernel(map, {2, 3})}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const auto legal = verify(example(), c.plan);
    ASSERT_FALSE(legal.has_value());
    EXPECT_EQ(legal.error().code, Errc::invalid);
    EXPECT_EQ(legal.error().to_string(), c.message);
  }
}

TEST(Plan, RefusesReadsAcrossRows) {
  const Program program = parse_program(
                              "tensor %0 x: float32[4, 6] input\n"
                              "tensor %1 s: float32[4] intermediate\n"
                              "tensor %2 y: float32[4, 6] output\n"
                              "inputs %0\n"
                              "stage %1[a=4] = sum[r=6] in float32: load %0[i0, i1]\n"
                              "stage %2[a=4, b=6] = map: add(load %0[i0, i1], "
                              "load %1[sub(3, i0)])\n"
                              "outputs %2\n")
                              .value();
  const auto legal = verify(program, {{kernel(Skeleton::reduce, {0, 1})}});
  ASSERT_FALSE(legal.has_value());
  EXPECT_EQ(legal.error().to_string(), "kernel 0: stage y reads a stage of its kernel across rows");
  EXPECT_EQ(fuse_greedily(program).kernels.size(), 2u);
}

TEST(Plan, SurvivesJson) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Program program = random_program(rng);
    Plan plan = fuse_greedily(program);
    for (KernelPlan& k : plan.kernels) k.schedule["vector_width"] = rng.below(100) - 50;
    const auto again = decode_plan(parse_json(dump_json(encode(plan))).value(), program);
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_EQ(*again, plan);
    EXPECT_EQ(digest_of(*again), digest_of(plan));
    Plan other = plan;
    other.kernels[0].schedule["vector_width"] += 1;
    EXPECT_NE(digest_of(other), digest_of(plan));
  }
}

TEST(Plan, DecodingRefusesWhatItDoesNotKnow) {
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {R"([])", "the plan is not a JSON object"},
      {R"({"kernels": 3})", "the plan's kernels are no list of at most 4096 kernels"},
      {R"({"kernels": [], "extra": 1})", "the plan has an unknown field 'extra'"},
      {R"({"kernels": [{"stages": [0]}]})", "a kernel of the plan lacks the field 'skeleton'"},
      {R"({"kernels": [{"skeleton": "sort", "stages": [0]}]})",
       "a kernel's skeleton is none of map, reduce, contract, scan"},
      {R"({"kernels": [{"skeleton": "map"}]})",
       "a kernel's stages are no list of the program's stages"},
      {R"({"kernels": [{"skeleton": "map", "stages": ["a"]}]})",
       "a stage of a kernel is no whole number"},
      {R"({"kernels": [{"skeleton": "map", "stages": [4]}]})",
       "a kernel names a stage outside 0..3"},
      {R"({"kernels": [{"skeleton": "map", "stages": [-1]}]})",
       "a kernel names a stage outside 0..3"},
      {R"({"kernels": [{"skeleton": "map", "stages": [18446744073709551615]}]})",
       "a kernel names a stage outside 0..3"},
      {R"({"kernels": [{"skeleton": "map", "stages": [0], "schedule": {"A b": 1}}]})",
       "a schedule has an entry whose name is no identifier"},
      {R"({"kernels": [{"skeleton": "map", "stages": [0], "schedule": {"a": 1.5}}]})",
       "schedule entry a is no whole number"},
      {R"({"kernels": [{"skeleton": "map", "stages": [0], "schedule": 5}]})",
       "a kernel's schedule is no object of at most 64 entries"},
      {R"({"kernels": [{"skeleton": "map", "stages": [0], "why": 5}]})",
       "a kernel of the plan has an unknown field 'why'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto plan = decode_plan(parse_json(c.text).value(), example());
    ASSERT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error().message, c.message);
  }
}

}  // namespace
}  // namespace ke::ir
