// SPDX-License-Identifier: Apache-2.0
#include "oracle/fake_oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace ke {
namespace {

TensorSpec spec_of(const char* name, ir::DType dtype, int64_t count) {
  return TensorSpec{.name = name, .dtype = dtype, .shape = {count}, .strides = {1}};
}

FakeOracleScript negation(ir::DType dtype, int64_t count) {
  FakeOracleScript script;
  script.problem.inputs = {spec_of("x", dtype, count)};
  script.problem.outputs = {spec_of("output0", dtype, count)};
  script.truth = [](const std::vector<FakeTensor>& inputs) {
    FakeTensor output = inputs[0];
    for (double& value : output) value = -value;
    return std::vector<FakeTensor>{output};
  };
  return script;
}

TEST(FakeOracle, PlacesDataLessThanSixtyFourBytesBeforeTheEnd) {
  const auto oracle = make_fake_oracle(negation(ir::DType::float32, 1001));
  const Result<InputSet> set = oracle->make_set({.seed = 1});
  ASSERT_TRUE(set) << set.error().to_string();
  const TensorMemory& input = set->inputs.at(0);
  EXPECT_EQ(input.offset % 64, 0);
  EXPECT_EQ(input.bytes, 4004);
  EXPECT_LT(input.memory.size() - input.offset - input.bytes, 64);
}

TEST(FakeOracle, ComputesTheTruthFromTheStoredInputs) {
  const auto oracle = make_fake_oracle(negation(ir::DType::float32, 10));
  const Result<InputSet> set = oracle->make_set({.seed = 1});
  ASSERT_TRUE(set);
  const TensorMemory& input = set->inputs.at(0);
  for (int i = 0; i < 10; ++i) {
    float x = 0;
    double y = 0;
    std::memcpy(&x, input.memory.data() + input.offset + i * 4, 4);
    std::memcpy(&y, set->truths.at(0).values.data() + i * 8, 8);
    EXPECT_EQ(static_cast<double>(-x), y);
    EXPECT_NE(x, 0);
  }
}

TEST(FakeOracle, DrawsTheSameSetForTheSameSeedOnly) {
  const auto oracle = make_fake_oracle(negation(ir::DType::float64, 4));
  const Result<InputSet> a = oracle->make_set({.seed = 1});
  const Result<InputSet> b = oracle->make_set({.seed = 1});
  const Result<InputSet> c = oracle->make_set({.seed = 2});
  ASSERT_TRUE(a && b && c);
  const auto data = [](const InputSet& set) {
    return set.inputs.at(0).memory.data() + set.inputs.at(0).offset;
  };
  EXPECT_EQ(std::memcmp(data(*a), data(*b), 32), 0);
  EXPECT_NE(std::memcmp(data(*a), data(*c), 32), 0);
  EXPECT_NE(a->id, b->id);
}

TEST(FakeOracle, RoundsHalfPrecisionTensorsToTheirType) {
  for (const ir::DType dtype : {ir::DType::float16, ir::DType::bfloat16}) {
    SCOPED_TRACE(enum_name(dtype));
    const auto oracle = make_fake_oracle(negation(dtype, 256));
    const Result<InputSet> set = oracle->make_set({.kind = SetKind::planted, .seed = 3});
    ASSERT_TRUE(set);
    const int digits = dtype == ir::DType::float16 ? 11 : 8;
    for (int i = 0; i < 256; ++i) {
      double y = 0;
      std::memcpy(&y, set->truths.at(0).values.data() + i * 8, 8);
      int exponent = 0;
      const double fraction = std::ldexp(std::frexp(y, &exponent), digits);
      EXPECT_TRUE(std::isfinite(y));
      if (exponent > -13) {
        EXPECT_EQ(fraction, std::nearbyint(fraction));
      }
    }
  }
}

TEST(FakeOracle, ReportsScriptedTimes) {
  const auto oracle = make_fake_oracle(negation(ir::DType::float32, 4));
  EXPECT_EQ(*oracle->ring(BaselineKind::eager, {}), Nanoseconds(20'000));
  EXPECT_EQ(*oracle->ring(BaselineKind::eager, {1, 2}), Nanoseconds(2'020'000));
  EXPECT_EQ(oracle->ring(BaselineKind::compile, {1}).error().code, Errc::unavailable);
}

}  // namespace
}  // namespace ke
