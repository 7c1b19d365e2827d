// SPDX-License-Identifier: Apache-2.0
//
// Random draws of forward(), handed to truth and kernels alike.
#include <cmath>

#include "oracle/oracle_fixture.hpp"

namespace ke {
namespace {

TEST_F(OracleTest, HoistsWhatForwardDrawsForTruthAndKernelAlike) {
  const auto oracle = start("draws.py");
  ASSERT_TRUE(oracle);
  const Problem& problem = oracle->problem();
  EXPECT_EQ(problem.flags, std::vector<std::string>{"random"});
  ASSERT_EQ(problem.inputs.size(), 4u);
  EXPECT_EQ(problem.inputs[1].name, "scale");
  EXPECT_EQ(problem.inputs[2], (TensorSpec{"draw0", ir::DType::boolean, {32, 16}, {1, 32},
                                           ir::InputKind::random}));
  EXPECT_EQ(problem.inputs[3], (TensorSpec{"draw1", ir::DType::float32, {16}, {1},
                                           ir::InputKind::random}));
  EXPECT_EQ(problem.draws, (std::vector<Draw>{{"bernoulli_", {0.75}}, {"normal_", {0, 1}}}));
  ASSERT_TRUE(problem.graph) << problem.graph_error;
  ASSERT_EQ(problem.graph->inputs.size(), 4u);
  EXPECT_EQ(problem.graph->inputs[2].kind, ir::InputKind::random);
  const std::string graph = print(*problem.graph);
  EXPECT_EQ(graph.find("aten.bernoulli"), std::string::npos) << graph;
  EXPECT_EQ(graph.find("aten.randn"), std::string::npos) << graph;

  for (const SetKind kind : {SetKind::nominal, SetKind::scaled, SetKind::mantissa_tail}) {
    SCOPED_TRACE(enum_name(kind));
    const InputSet set = made(*oracle, {.kind = kind, .seed = 1});
    ASSERT_EQ(set.truths.size(), 1u);
    EXPECT_LT(set.truths[0].pytorch_rms, 1e-6 * set.truths[0].rms_truth);
    int64_t kept = 0;
    for (int64_t i = 0; i < 512; ++i) {
      const int64_t transposed = i % 16 * 32 + i / 16;  // x and its mask are column-major
      const auto mask = element<bool>(set.inputs.at(2), transposed);
      kept += mask;
      const double x = element<float>(set.inputs[0], transposed);
      const double noise = element<float>(set.inputs[3], i % 16);
      const double scale = element<float>(set.inputs[1], i % 16);
      EXPECT_NEAR(expected(set.truths[0], i), (mask ? x / 0.75 : 0) + noise * scale,
                  1e-12 * (1 + std::fabs(x)));
    }
    EXPECT_GT(kept, 320);
    EXPECT_LT(kept, 448);
  }
}

TEST_F(OracleTest, DrawsAnewForEachSeed) {
  const auto oracle = start("draws.py");
  ASSERT_TRUE(oracle);
  const InputSet a = made(*oracle, {.seed = 1}), again = made(*oracle, {.seed = 1});
  const InputSet other = made(*oracle, {.seed = 2, .with_truth = false});
  for (const size_t draw : {2, 3}) {
    EXPECT_TRUE(same_bytes(a.inputs.at(draw), again.inputs.at(draw)));
    EXPECT_FALSE(same_bytes(a.inputs.at(draw), other.inputs.at(draw)));
  }
  // Baselines draw for themselves and never see these files.
  ASSERT_TRUE(oracle->ring(BaselineKind::eager, {a.id, other.id}));
  Result<BaselineState> state = oracle->baseline(BaselineKind::compile);
  while (state && *state == BaselineState::building) {
    const InputSet more = made(*oracle, {.seed = 3});
    oracle->release(more.id);
    leave_the_processor();
    state = oracle->baseline(BaselineKind::compile);
  }
  ASSERT_TRUE(state) << state.error().to_string();
  ASSERT_EQ(*state, BaselineState::ready);
  const Result<Nanoseconds> rung = oracle->ring(BaselineKind::compile, {a.id, other.id});
  EXPECT_TRUE(rung) << rung.error().to_string();
}

TEST_F(OracleTest, HoistsUniformNumbersWhereProbabilitiesAreData) {
  const auto oracle = start("bernoulli.py");
  ASSERT_TRUE(oracle);
  const Problem& problem = oracle->problem();
  ASSERT_EQ(problem.inputs.size(), 2u);
  EXPECT_EQ(problem.draws, (std::vector<Draw>{{"uniform_", {0, 1}}}));
  ASSERT_TRUE(problem.graph) << problem.graph_error;
  const InputSet set = made(*oracle, {.seed = 1});
  int64_t ones = 0;
  for (int64_t i = 0; i < 512; ++i) {
    const double x = element<float>(set.inputs[0], i);
    const bool one = element<float>(set.inputs[1], i) < 1 / (1 + std::exp(-x));
    ones += one;
    EXPECT_EQ(expected(set.truths.at(0), i), one ? 1.0 : 0.0);
  }
  EXPECT_GT(ones, 128);
  EXPECT_LT(ones, 384);
}

TEST_F(OracleTest, HoistsDrawsThatTheGraphHides) {
  const auto oracle = start("draws_state.py");
  ASSERT_TRUE(oracle);
  const Problem& problem = oracle->problem();
  ASSERT_EQ(problem.draws.size(), 3u);
  EXPECT_EQ(problem.draws[1].method, "normal_");
  EXPECT_EQ(problem.draws[2], (Draw{"bernoulli_", {0.5}}));  // between the layers of the LSTM
  EXPECT_FALSE(problem.graph);
  EXPECT_NE(problem.graph_error.find("random draws"), std::string::npos) << problem.graph_error;
  const InputSet set = made(*oracle, {.seed = 1});
  EXPECT_TRUE(problem.float64_truth);
  EXPECT_LT(set.truths.at(0).pytorch_rms, 1e-5 * set.truths[0].rms_truth);
}

TEST_F(OracleTest, HoistsDrawsOfAProblemThatCannotBeExported) {
  const auto oracle = start("draws_without_graph.py");
  ASSERT_TRUE(oracle);
  EXPECT_FALSE(oracle->problem().graph);
  EXPECT_EQ(oracle->problem().draws, (std::vector<Draw>{{"random_", {2, 9}}}));
  const InputSet set = made(*oracle, {.seed = 1});
  const auto drawn = static_cast<double>(element<int64_t>(set.inputs.at(1), 3));
  EXPECT_GE(drawn, 2);
  EXPECT_LT(drawn, 9);
  EXPECT_NEAR(expected(set.truths.at(0), 3), drawn * std::fabs(element<float>(set.inputs[0], 3)),
              1e-12);
}

}  // namespace
}  // namespace ke
