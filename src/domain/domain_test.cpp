// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/json.hpp"
#include "domain/evaluation.hpp"
#include "domain/kernel_profile.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "domain/roofline.hpp"

namespace ke {
namespace {

Evaluation accepted_evaluation() {
  Evaluation e;
  e.verdict = Verdict::accepted;
  e.detail = "within the budget";
  e.errors.push_back(OutputError{1e-8, 2e-7, 1e-8, 3e-7, 8e-8, 2.4e-6, 3});
  Measurement m;
  m.candidate_ns = {100, 110};
  m.eager_ns = {200, 210};
  m.empty_call_ns = 7;
  m.calls_per_batch = 12;
  m.time_ns = 105;
  m.eager_median_ns = 205;
  m.speedup = 1.95;
  m.speedup_low = 1.9;
  m.speedup_high = 2.0;
  e.measurement = m;
  e.flags = {"trivial"};
  e.protections = "user,mnt";
  e.confirmed = true;
  e.build_ms = 250;
  e.judge_ms = 90;
  return e;
}

TEST(EvaluationCodec, ComesBackAsItWasWritten) {
  const Json json = encode(accepted_evaluation());
  const Result<Evaluation> back = decode_evaluation(json);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(dump_json(encode(*back)), dump_json(json));
  EXPECT_EQ(back->measurement->eager_median_ns, 205);
  EXPECT_FALSE(back->measurement->compile_median_ns.has_value());
}

TEST(EvaluationCodec, KeepsAnInfiniteErrorThroughText) {
  Evaluation e;
  e.verdict = Verdict::wrong_output;
  e.errors.push_back(OutputError{.rms = std::numeric_limits<double>::infinity(), .max = 1});
  const Result<Json> text = parse_json(dump_json(encode(e)));
  ASSERT_TRUE(text);
  const Result<Evaluation> back = decode_evaluation(*text);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_TRUE(std::isinf(back->errors[0].rms));
  EXPECT_EQ(back->errors[0].max, 1);
}

TEST(EvaluationCodec, RefusesWhatItDoesNotKnow) {
  struct Case {
    const char* what;
    std::function<void(Json&)> damage;
  } cases[] = {
      {"an unknown field", [](Json& json) { json["surprise"] = 1; }},
      {"a missing field", [](Json& json) { json.erase("flags"); }},
      {"an unknown verdict", [](Json& json) { json["verdict"] = "splendid"; }},
      {"a wrong type", [](Json& json) { json["build_ms"] = "soon"; }},
      {"a time without acceptance", [](Json& json) { json["verdict"] = "crashed"; }},
      {"an unknown field inside", [](Json& json) { json["measurement"]["x"] = 1; }},
      {"errors that are no list", [](Json& json) { json["errors"] = Json::object(); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Json json = encode(accepted_evaluation());
    c.damage(json);
    EXPECT_FALSE(decode_evaluation(json));
  }
}

TEST(Fitness, ExistsOnlyForAcceptedAndMeasured) {
  Evaluation e = accepted_evaluation();
  EXPECT_EQ(fitness(e), 1.95);
  e.measurement.reset();
  EXPECT_FALSE(fitness(e));
  e = accepted_evaluation();
  e.verdict = Verdict::wrong_output;
  EXPECT_FALSE(fitness(e));
}

TEST(TensorSpec, CountsElementsAndBytes) {
  TensorSpec spec{"x", ir::DType::int16, {3, 5}, {5, 1}, ir::InputKind::argument};
  EXPECT_EQ(spec.elements(), 15);
  EXPECT_EQ(spec.bytes(), 30);
  EXPECT_EQ((TensorSpec{"scalar", ir::DType::float64, {}, {}}.elements()), 1);
  EXPECT_EQ((TensorSpec{"none", ir::DType::float64, {0, 7}, {7, 1}}.bytes()), 0);
  const Result<TensorSpec> back = decode_tensor_spec(encode(spec));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, spec);
}

TEST(TensorSpec, RefusesImpossibleShapes) {
  Json json = encode(TensorSpec{"x", ir::DType::float32, {2, 3}, {3, 1}});
  json["shape"] = {2, -3};
  EXPECT_FALSE(decode_tensor_spec(json));
  json["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(decode_tensor_spec(json));
  json["shape"] = {2};
  EXPECT_FALSE(decode_tensor_spec(json));
}

TEST(MachineProfileCodec, ComesBackAndRefusesNonsense) {
  MachineProfile profile;
  profile.cpu = "a cpu";
  profile.threads = 2;
  Json json = encode(profile);
  const Result<MachineProfile> back = decode_machine_profile(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(dump_json(encode(*back)), dump_json(json));
  json["bandwidth_all"] = 0;
  EXPECT_FALSE(decode_machine_profile(json));
}

TEST(KernelProfileCodec, ComesBackWithWhatIsMissing) {
  KernelProfile profile;
  profile.vector_instructions = 12;
  profile.spills = 0;
  profile.hot_loop = {"vaddps %ymm0,%ymm1,%ymm1"};
  profile.missing["cycles_per_iteration"] = "llvm-mca is not installed";
  Json json = encode(profile);
  const Result<KernelProfile> back = decode_kernel_profile(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(dump_json(encode(*back)), dump_json(json));
  EXPECT_FALSE(back->scalar_instructions);
  json["guess"] = 1;
  EXPECT_FALSE(decode_kernel_profile(json));
}

TEST(Roofline, HasASideForBytesAndOneForOperations) {
  MachineProfile machine;
  machine.bandwidth_all = 1e10;
  machine.bandwidth_llc_all = 4e10;
  machine.flops_f32_all = 1e11;
  Problem problem;
  problem.inputs = {{"x", ir::DType::float32, {1000}, {1}, ir::InputKind::argument}};
  problem.outputs = {{"y", ir::DType::float32, {1500}, {1}, ir::InputKind::argument}};
  problem.flops = 5000;
  EXPECT_DOUBLE_EQ(roofline(problem, machine, true).moving_ns, 1000);
  EXPECT_DOUBLE_EQ(roofline(problem, machine, false).moving_ns, 250);
  EXPECT_DOUBLE_EQ(roofline(problem, machine, true).computing_ns, 50);
  problem.flops = 0;
  EXPECT_EQ(roofline(problem, machine, true).computing_ns, 0);
}

TEST(Fitness, RanksAlikeWhicheverBaselineWasTimed) {
  Evaluation evaluation;
  evaluation.verdict = Verdict::accepted;
  evaluation.measurement.emplace();
  Measurement& measured = *evaluation.measurement;
  measured.eager_ns = {400};
  measured.eager_median_ns = 400;
  measured.speedup = 4;  // eager 400, candidate 100
  EXPECT_DOUBLE_EQ(*ranking_fitness(evaluation), 4);
  measured.eager_ns.clear();  // the same candidate beside torch.compile, which takes 200
  measured.compile_ns = {200};
  measured.compile_median_ns = 200;
  measured.speedup = 2;
  EXPECT_DOUBLE_EQ(*ranking_fitness(evaluation), 4);
  EXPECT_DOUBLE_EQ(*fitness(evaluation), 2);
}

}  // namespace
}  // namespace ke
