// SPDX-License-Identifier: Apache-2.0
//
// The real oracle on small problem files. Needs Python with torch: KE_PYTHON, or the .venv of the
// source tree; without it the program ends with 77 (skipped).
#include "oracle/oracle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "oracle/oracle_fixture.hpp"

namespace ke {
namespace {

TEST_F(OracleTest, DescribesAndComputesAPointwiseProblem) {
  const auto oracle = start("relu.py");
  ASSERT_TRUE(oracle);
  const Problem& problem = oracle->problem();
  ASSERT_EQ(problem.inputs.size(), 1u);
  EXPECT_EQ(problem.inputs[0].name, "x");
  EXPECT_EQ(problem.inputs[0].shape, (std::vector<int64_t>{8, 16}));
  ASSERT_EQ(problem.outputs.size(), 1u);
  EXPECT_EQ(problem.outputs[0].dtype, ir::DType::float32);
  ASSERT_TRUE(problem.graph) << problem.graph_error;
  ASSERT_EQ(problem.graph->nodes.size(), 1u);
  EXPECT_EQ(problem.graph->nodes[0].op, "aten.relu.default");
  EXPECT_TRUE(problem.float64_truth);
  EXPECT_EQ(problem.longest_reduction, 1);
  EXPECT_EQ(problem.unit_roundoff, std::ldexp(1.0, -24));

  const InputSet set = made(*oracle, {.seed = 1});
  ASSERT_EQ(set.inputs.size(), 1u);
  const TensorMemory& input = set.inputs[0];
  EXPECT_LT(input.memory.size() - input.offset - input.bytes, 64);
  ASSERT_EQ(set.truths.size(), 1u);
  EXPECT_TRUE(set.truths[0].ignore.empty());
  EXPECT_FALSE(set.truths[0].any_non_finite_kind);
  EXPECT_EQ(set.truths[0].atol, 1e-4);
  EXPECT_EQ(set.truths[0].pytorch_max, 0);
  bool some_negative = false;
  for (int64_t i = 0; i < 128; ++i) {
    const auto x = element<float>(input, i);
    some_negative |= x < 0;
    EXPECT_EQ(expected(set.truths[0], i), x > 0 ? static_cast<double>(x) : 0.0);
  }
  EXPECT_TRUE(some_negative);
}

TEST_F(OracleTest, DrawsBySeedAndProbesDiffer) {
  const auto oracle = start("relu.py");
  ASSERT_TRUE(oracle);
  const InputSet a = made(*oracle, {.seed = 1}), again = made(*oracle, {.seed = 1});
  const InputSet other = made(*oracle, {.seed = 2, .with_truth = false});
  EXPECT_TRUE(same_bytes(a.inputs.at(0), again.inputs.at(0)));
  EXPECT_FALSE(same_bytes(a.inputs.at(0), other.inputs.at(0)));
  EXPECT_TRUE(other.truths.empty());
  for (const SetKind kind : {SetKind::planted, SetKind::tied, SetKind::mantissa_tail}) {
    SCOPED_TRACE(enum_name(kind));
    const InputSet probe = made(*oracle, {.kind = kind, .seed = 1});
    EXPECT_FALSE(same_bytes(a.inputs.at(0), probe.inputs.at(0)));
  }
  const InputSet tail = made(*oracle, {.kind = SetKind::mantissa_tail, .seed = 1});
  for (int64_t i = 0; i < 128; ++i) {
    int exponent = 0;
    const double fraction = std::frexp(element<float>(tail.inputs[0], i), &exponent);
    EXPECT_EQ(std::fabs(fraction), (1 + std::ldexp(1.0, -12)) / 2);
  }
}

TEST_F(OracleTest, PlantsSpecialValuesWithTheTruthForThem) {
  const auto oracle = start("relu.py");
  ASSERT_TRUE(oracle);
  const InputSet set = made(*oracle, {.kind = SetKind::special, .seed = 3});
  int64_t nans = 0, infinities = 0, minus_zeros = 0, denormals = 0, large = 0;
  for (int64_t i = 0; i < set.inputs.at(0).bytes / 4; ++i) {
    const auto x = element<float>(set.inputs[0], i);
    nans += std::isnan(x);
    infinities += std::isinf(x);
    minus_zeros += x == 0 && std::signbit(x);
    denormals += std::fpclassify(x) == FP_SUBNORMAL;
    large += std::isfinite(x) && std::fabs(x) > 1e9F;
    const double want = expected(set.truths.at(0), i);
    EXPECT_TRUE(std::isnan(x) ? std::isnan(want) : want == std::max(x, 0.0F)) << x;
  }
  EXPECT_GT(nans, 0);
  EXPECT_GT(infinities, 0);
  EXPECT_GT(minus_zeros + denormals, 0);
  EXPECT_GT(large, 0);
}

TEST_F(OracleTest, PassesParametersThenBuffersOnceAndKeepsThemApartPerSet) {
  const auto oracle = start("linear_norm.py");
  ASSERT_TRUE(oracle);
  std::vector<std::string> names;
  for (const TensorSpec& spec : oracle->problem().inputs) names.push_back(spec.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "first.weight", "first.bias", "second.bias",
                                             "norm.weight", "norm.bias", "norm.running_mean",
                                             "norm.running_var", "norm.num_batches_tracked"}));
  EXPECT_EQ(oracle->problem().longest_reduction, 16);
  ASSERT_TRUE(oracle->problem().graph) << oracle->problem().graph_error;
  EXPECT_EQ(oracle->problem().graph->inputs.size(), names.size());
  EXPECT_EQ(oracle->problem().graph->outputs.size(), 1u);
  const InputSet nominal = made(*oracle, {.seed = 1});
  EXPECT_GT(nominal.truths.at(0).pytorch_rms, 0);
  EXPECT_LT(nominal.truths.at(0).pytorch_rms, 1e-6 * nominal.truths[0].rms_truth);
  EXPECT_TRUE(nominal.truths[0].any_non_finite_kind);
  EXPECT_EQ(element<float>(nominal.inputs.at(4), 0), 1.0F);
  // A probe makes fresh weights vary, so that a kernel which ignores them is seen.
  const InputSet probe = made(*oracle, {.kind = SetKind::scaled, .seed = 1});
  EXPECT_NE(element<float>(probe.inputs.at(4), 0), element<float>(probe.inputs[4], 1));
  // Training mode writes the running mean; the memory that candidates read must not change.
  const auto rung = oracle->ring(BaselineKind::eager, {nominal.id, nominal.id});
  ASSERT_TRUE(rung) << rung.error().to_string();
  EXPECT_EQ(element<float>(nominal.inputs.at(6), 0), 0.0F);
  EXPECT_EQ(element<int64_t>(nominal.inputs.at(8), 0), 0);
}

TEST_F(OracleTest, FlagsWhatFoldsToFarLessWork) {
  const auto summed = start("summed_product.py");
  ASSERT_TRUE(summed);
  const Problem& problem = summed->problem();
  EXPECT_EQ(problem.flags, std::vector<std::string>{"foldable"});
  // As written: the product, its halves and their sum; at least: the weights' sum, which is used in
  // 64 dot products, and one halving for each of them.
  const int64_t product = 2 * 64 * 128 * 96, halves = 64 * 96, sum = 64 * 96;
  EXPECT_EQ(problem.flops, product + halves + sum);
  EXPECT_EQ(problem.minimal_flops(), 128 * 96 + 2 * 64 * 128 + 2 * 64);

  const auto norm = start("linear_norm.py");  // a norm is not linear; its statistics are dead code
  ASSERT_TRUE(norm);
  EXPECT_EQ(norm->problem().flags, std::vector<std::string>{});
  EXPECT_LE(norm->problem().minimal_flops(), norm->problem().flops);
}

TEST_F(OracleTest, DoesNotGradeTies) {
  const auto oracle = start("argmax_behind_product.py");
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->problem().outputs.at(0).dtype, ir::DType::int64);
  EXPECT_EQ(oracle->problem().longest_reduction, 256);
  const InputSet set = made(*oracle, {.seed = 4});
  const OutputTruth& truth = set.truths.at(0);
  EXPECT_EQ(truth.values.size(), 4096);
  ASSERT_FALSE(truth.ignore.empty());
  int ignored = 0;
  for (int i = 0; i < 64; ++i) ignored += truth.ignore.data()[i] == std::byte{1};
  EXPECT_GT(ignored, 32);
}

TEST_F(OracleTest, FlattensArgumentsAndResults) {
  const auto oracle = start("several.py");
  ASSERT_TRUE(oracle);
  const Problem& problem = oracle->problem();
  ASSERT_EQ(problem.inputs.size(), 4u);
  EXPECT_EQ(problem.inputs[0].strides, (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(problem.inputs[1].name, "pair.0");
  EXPECT_EQ(problem.inputs[3].name, "empty");
  EXPECT_EQ(problem.inputs[3].bytes(), 0);
  ASSERT_EQ(problem.outputs.size(), 3u);
  EXPECT_EQ(problem.outputs[1].dtype, ir::DType::int64);
  EXPECT_EQ(problem.outputs[2].dtype, ir::DType::boolean);
  const InputSet set = made(*oracle, {.seed = 1});
  ASSERT_EQ(set.truths.size(), 3u);
  float largest = -HUGE_VALF;
  for (int64_t i = 0; i < 6; ++i) {
    largest = std::max(largest, element<float>(set.inputs[0], i * problem.inputs[0].strides[1]));
  }
  EXPECT_EQ(expected(set.truths[0], 0), 2.5 * static_cast<double>(largest));
}

TEST_F(OracleTest, RestoresWhatForwardMutates) {
  const auto oracle = start("mutates_input.py");
  ASSERT_TRUE(oracle);
  const InputSet set = made(*oracle, {.seed = 1});
  EXPECT_EQ(expected(set.truths.at(0), 3), 2.0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(oracle->ring(BaselineKind::eager, {set.id}));
    EXPECT_EQ(element<float>(set.inputs.at(0), 3), 0.0F);
  }
}

TEST_F(OracleTest, KeepsAProblemThatCannotBeExported) {
  const auto oracle = start("branches.py");
  ASSERT_TRUE(oracle);
  EXPECT_FALSE(oracle->problem().graph);
  EXPECT_FALSE(oracle->problem().graph_error.empty());
  const InputSet set = made(*oracle, {.seed = 1});
  EXPECT_NEAR(expected(set.truths.at(0), 2),
              std::sin(static_cast<double>(element<float>(set.inputs.at(0), 2))), 1e-12);
  EXPECT_TRUE(oracle->ring(BaselineKind::eager, {set.id}));
}

TEST_F(OracleTest, RestoresAttributesThatForwardReplaces) {
  const auto oracle = start("keeps_state.py");
  ASSERT_TRUE(oracle);
  const InputSet a = made(*oracle, {.seed = 1});
  ASSERT_TRUE(oracle->ring(BaselineKind::eager, {a.id, a.id}));
  const InputSet b = made(*oracle, {.seed = 1});
  EXPECT_EQ(expected(a.truths.at(0), 0), expected(b.truths.at(0), 0));
  EXPECT_NEAR(expected(a.truths[0], 0),
              std::tanh(1 + static_cast<double>(element<float>(a.inputs.at(0), 0))), 1e-12);
}

TEST_F(OracleTest, FallsBackToTheProblemsOwnPrecision) {
  const auto oracle = start("half_only.py");
  ASSERT_TRUE(oracle);
  EXPECT_FALSE(oracle->problem().float64_truth);
  const InputSet set = made(*oracle, {.seed = 1});
  EXPECT_EQ(set.truths.at(0).pytorch_rms, 0);
  EXPECT_GT(set.truths[0].rms_truth, 0);
}

TEST_F(OracleTest, ReadsTolerancesAndPoliciesFromTheSidecar) {
  const auto oracle = start("tolerant.py");
  ASSERT_TRUE(oracle);
  EXPECT_EQ(oracle->problem().determinism, Determinism::budget);
  const InputSet set = made(*oracle, {.seed = 1});
  EXPECT_EQ(set.truths.at(0).atol, 0.01);
  EXPECT_EQ(set.truths.at(0).rtol, 0.02);
}

TEST_F(OracleTest, ConvertsAProblemToAnotherType) {
  OracleOptions options = options_for("relu.py");
  options.dtype = "bf16";
  Result<std::unique_ptr<Oracle>> oracle = start_oracle(options);
  ASSERT_TRUE(oracle) << oracle.error().to_string();
  EXPECT_EQ((*oracle)->problem().inputs.at(0).dtype, ir::DType::bfloat16);
  EXPECT_EQ((*oracle)->problem().unit_roundoff, std::ldexp(1.0, -8));
  const InputSet set = made(**oracle, {.seed = 1});
  EXPECT_EQ(set.truths.at(0).atol, 1e-2);
}

TEST_F(OracleTest, RingsAlsoWhenPausedOrEmpty) {
  const auto oracle = start("relu.py");
  ASSERT_TRUE(oracle);
  const InputSet set = made(*oracle, {.seed = 1});
  oracle->pause();
  const Result<Nanoseconds> one = oracle->ring(BaselineKind::eager, {set.id});
  ASSERT_TRUE(one) << one.error().to_string();
  EXPECT_GT(one->count(), 0);
  oracle->pause();
  oracle->resume();
  const Result<Nanoseconds> empty = oracle->ring(BaselineKind::eager, {});
  ASSERT_TRUE(empty) << empty.error().to_string();
  oracle->pause();
  oracle->release(set.id);
  EXPECT_EQ(oracle->ring(BaselineKind::compile, {}).error().code, Errc::unavailable);
  const Result<Nanoseconds> gone = oracle->ring(BaselineKind::eager, {set.id});
  EXPECT_FALSE(gone);  // released
  EXPECT_TRUE(oracle->make_set({.seed = 2}));
}

TEST_F(OracleTest, LetsTheLibraryReuseItsMemory) {
  const auto oracle = start("page_faults.py");
  ASSERT_TRUE(oracle);
  const InputSet set = made(*oracle, {.seed = 1});
  ASSERT_EQ(set.truths.size(), 1u);
  int64_t faults = 0;
  std::memcpy(&faults, set.truths[0].values.data(), sizeof faults);
  constexpr int64_t kPagesOfOneCall = 16_MiB / 4096;
  EXPECT_LT(faults, kPagesOfOneCall / 8);
}

TEST_F(OracleTest, BuildsAndRingsTorchCompile) {
  const auto oracle = start("linear_norm.py");
  ASSERT_TRUE(oracle);
  const InputSet a = made(*oracle, {.seed = 1}), b = made(*oracle, {.seed = 2});
  Result<BaselineState> state = oracle->baseline(BaselineKind::compile);
  ASSERT_TRUE(state) << state.error().to_string();
  EXPECT_EQ(*state, BaselineState::building);
  for (int round = 0; round < 200'000 && state && *state == BaselineState::building; ++round) {
    // Eager keeps answering while the compiler works, and stopping it does no harm.
    ASSERT_TRUE(oracle->ring(BaselineKind::eager, {a.id}));
    oracle->pause();
    state = oracle->baseline(BaselineKind::compile);
    oracle->resume();
    const Result<InputSet> other = oracle->make_set({.seed = 5});
    ASSERT_TRUE(other) << other.error().to_string();
    oracle->release(other->id);
    leave_the_processor();
  }
  ASSERT_EQ(*state, BaselineState::ready);
  const Result<Nanoseconds> rung = oracle->ring(BaselineKind::compile, {a.id, b.id, a.id});
  ASSERT_TRUE(rung) << rung.error().to_string();
  EXPECT_GT(rung->count(), 0);
  oracle->pause();
  oracle->release(a.id);
  EXPECT_TRUE(oracle->ring(BaselineKind::compile, {b.id}));
  EXPECT_TRUE(os::exists(cache_->path() / "inductor"));  // for the next run
  EXPECT_EQ(element<int64_t>(b.inputs.at(8), 0), 0);
}

TEST_F(OracleTest, SaysInOneSentenceWhatIsWrongWithAFile) {
  struct Case {
    const char* file;
    const char* sentence;  // must be part of the message
  } cases[] = {
      {"bad/does_not_exist.py", "does not exist"},
      {"bad", "is not a file"},
      {"bad/syntax_error.py", "does not parse"},
      {"bad/no_model.py", "defines no Model"},
      {"bad/no_inputs.py", "defines no get_inputs"},
      {"bad/inputs_not_a_list.py", "get_inputs() returns Tensor; it must return a list"},
      {"bad/init_inputs_not_a_list.py", "get_init_inputs() returns int"},
      {"bad/no_tensor.py", "returns no tensor"},
      {"bad/raises_at_import.py", "raises ValueError during import (line 4): not today"},
      {"bad/raises_in_model.py", "raises KeyError during construction of Model (line 8)"},
      {"bad/raises_in_forward.py", "raises RuntimeError during forward() (line 7)"},
      {"bad/returns_number.py", "forward() returns int"},
      {"bad/exits.py", "exits the program during import (line 6)"},
      {"bad/exits_hard.py", "ended the program during get_inputs() (exit code 0)"},
      {"bad/crashes.py", "ended the program during get_inputs() (signal 11"},
      {"bad/missing_package.py", "needs the Python package 'a_package_that_nobody_has'"},
      {"bad/permutes.py", "draws random numbers by torch.randperm, which is not supported"},
      {"bad/draws_by_data.py", "draws other random numbers in one call than in another"},
      {"bad/draws_unseen.py", "draws random numbers where it cannot be observed"},
      {"bad/changing_scalar.py", "argument 1 of forward() is not a tensor and changes"},
      {"bad/complex_input.py", "has the type complex64, which is not supported"},
      {"bad/unknown_key.py", "unknown key 'tolerance'"},
      {"bad/unknown_determinism.py", "determinism must be one of bitwise, budget"},
      {"bad/loops.py", "did not finish get_inputs() within its time limit"},
      {"bad/eats_memory.py", "needs more memory than the 4 GiB"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file);
    OracleOptions options = options_for(c.file);
    options.limits.oracle_memory_bytes = 4_GiB;
    if (std::string_view(c.file) == "bad/loops.py") {
      options.limits.oracle_load_max = Milliseconds(3000);
    }
    const Result<std::unique_ptr<Oracle>> oracle = start_oracle(options);
    ASSERT_FALSE(oracle);
    EXPECT_EQ(oracle.error().code, Errc::invalid);
    const std::string message = oracle.error().to_string();
    EXPECT_NE(message.find(c.sentence), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST_F(OracleTest, SaysThatAnInterpreterIsMissing) {
  OracleOptions options = options_for("relu.py");
  options.python = "/nowhere/python";
  const Result<std::unique_ptr<Oracle>> oracle = start_oracle(options);
  ASSERT_FALSE(oracle);
  EXPECT_EQ(oracle.error().code, Errc::unavailable);
}

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string probe = ke::python_with_torch() + " -I -c 'import torch' >/dev/null 2>&1";
  constexpr int kSkipped = 77;
  if (std::system(probe.c_str()) != 0) return kSkipped;
  return RUN_ALL_TESTS();
}
