// SPDX-License-Identifier: Apache-2.0
//
// Plans against their programs: realized kernels compute what the program means, on random programs
// and for every neighbour of the greedy plan; and the fusions that named operators must get.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/plan.hpp"
#include "ir/random_program.hpp"

namespace ke::ir {
namespace {

template <class T>
bool same_value(const std::byte* a, const std::byte* b) {
  T x, y;
  std::memcpy(&x, a, sizeof(T));
  std::memcpy(&y, b, sizeof(T));
  return std::isnan(x) && std::isnan(y);
}

// Bitwise, but any NaN equals any other.
bool same_bytes(const Tensor& tensor, const TensorBytes& a, const TensorBytes& b) {
  if (a.size() != b.size()) return false;
  const auto size = static_cast<size_t>(bytes_of(tensor.dtype));
  for (size_t i = 0; i < a.size(); i += size) {
    if (std::memcmp(&a[i], &b[i], size) == 0) continue;
    if (tensor.dtype == DType::float32 && same_value<float>(&a[i], &b[i])) continue;
    if (tensor.dtype == DType::float64 && same_value<double>(&a[i], &b[i])) continue;
    const bool half = tensor.dtype == DType::float16 || tensor.dtype == DType::bfloat16;
    if (half) continue;  // NaN payloads; finite halves are compared through their float32 readers
    return false;
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
    EXPECT_TRUE(same_bytes(program.tensor(program.outputs[i]), (*found)[i], expected[i]))
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

}  // namespace
}  // namespace ke::ir
