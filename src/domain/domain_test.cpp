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

TEST(ProblemCodec, ComesBackAsItWasWritten) {
  Problem problem;
  problem.name = "level1/1_x";
  problem.digest = digest_of("file");
  problem.inputs = {{"x", ir::DType::float32, {4, 2}, {2, 1}, ir::InputKind::argument}};
  problem.outputs = {{"y", ir::DType::int64, {4}, {1}, ir::InputKind::argument}};
  problem.graph_error = "it does not export";
  problem.longest_reduction = 7;
  problem.flops = 100;
  problem.spared_flops = 40;
  problem.libraries = "m";
  problem.determinism = Determinism::budget;
  problem.flags = {"random"};
  problem.draws = {{"bernoulli_", {0.7}}};
  problem.shape_case = 1;
  problem.case_count = 3;
  const Json json = encode(problem);
  const Result<Problem> back = decode_problem(json);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(dump_json(encode(*back)), dump_json(json));
  EXPECT_EQ(back->determinism, Determinism::budget);
  EXPECT_EQ(back->minimal_flops(), 60);
  for (const char* key : {"determinism", "digest", "inputs", "draws"}) {
    Json broken = json;
    broken[key] = "something else";
    EXPECT_FALSE(decode_problem(broken)) << key;
  }
}

TEST(EvaluationCodec, ComesBackAsItWasWritten) {
  const Json json = encode(accepted_evaluation());
  const Result<Evaluation> back = decode_evaluation(json);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(dump_json(encode(*back)), dump_json(json));
  EXPECT_EQ(back->measurement->eager_median_ns, 205);
  EXPECT_FALSE(back->measurement->compile_median_ns.has_value());
}

TEST(EvaluationCodec, KeepsCasesAndReadsRowsWithoutThem) {
  Evaluation e = accepted_evaluation();
  EXPECT_FALSE(encode(e).contains("cases")) << "one case is written as before";
  e.cases = {{.shapes = "x [4]", .flags = {"tie"}, .counted = true, .measurement = e.measurement},
             {.shapes = "x [0]", .flags = {}, .counted = false, .measurement = std::nullopt}};
  const Result<Evaluation> back = decode_evaluation(encode(e));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(dump_json(encode(*back)), dump_json(encode(e)));
  ASSERT_EQ(back->cases.size(), 2u);
  EXPECT_EQ(back->cases[0].measurement->time_ns, 105);
  EXPECT_FALSE(back->cases[1].counted);
}

CaseResult measured_case(int64_t time_ns, int64_t eager_ns) {
  Measurement m;
  m.time_ns = time_ns;
  m.eager_ns = {eager_ns};
  m.eager_median_ns = eager_ns;
  m.speedup = static_cast<double>(eager_ns) / static_cast<double>(time_ns);
  m.speedup_low = m.speedup * 0.9;
  m.speedup_high = m.speedup * 1.1;
  return {.shapes = "x", .flags = {}, .counted = true, .measurement = m};
}

TEST(MeanOfCases, IsGeometricAndItsTimesGiveItsSpeedup) {
  const auto mean = mean_of({measured_case(10'000, 80'000), measured_case(40'000, 80'000)});
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->speedup, 4, 1e-9);
  EXPECT_NEAR(mean->speedup_low, 3.6, 1e-9);
  EXPECT_EQ(mean->time_ns, 20'000);
  EXPECT_EQ(mean->eager_median_ns, 80'000);
  EXPECT_FALSE(mean->compile_median_ns.has_value());
}

TEST(MeanOfCases, LeavesOutWhatIsNotCountedUnlessNothingIs) {
  CaseResult empty = measured_case(1, 6'000);
  empty.counted = false;
  EXPECT_NEAR(mean_of({measured_case(10'000, 30'000), empty})->speedup, 3, 1e-9);
  EXPECT_NEAR(mean_of({empty, empty})->speedup, 3, 1e-9) << "6 us against a launch of 2 us";
  empty.measurement.reset();
  EXPECT_FALSE(mean_of({measured_case(10'000, 30'000), empty}).has_value());
}

TEST(MeanOfCases, CountsATimeBelowThatOfLaunchingAsLaunching) {
  // 8 us against 10 ns is a gain of 4 in the mean, not of 800; a gain stays one, a loss a loss.
  EXPECT_NEAR(mean_of({measured_case(10, 8'000), measured_case(10'000, 10'000)})->speedup, 2, 1e-9);
  EXPECT_NEAR(mean_of({measured_case(10, 1'000)})->speedup, 1, 1e-9);
  EXPECT_NEAR(mean_of({measured_case(1'000, 500)})->speedup, 0.5, 1e-9);
}

TEST(MeanOfCases, RanksAgainstEagerInEveryCase) {
  Evaluation e = accepted_evaluation();
  CaseResult compiled = measured_case(10'000, 90'000);
  compiled.measurement->compile_ns = {20'000};
  compiled.measurement->compile_median_ns = 20'000;
  compiled.measurement->speedup = 2;
  e.cases = {compiled, measured_case(10'000, 40'000)};
  e.measurement = mean_of(e.cases);
  EXPECT_NEAR(*fitness(e), std::sqrt(2.0 * 4.0), 1e-9);
  EXPECT_NEAR(*ranking_fitness(e), std::sqrt(9.0 * 4.0), 1e-9);
}

Problem case_of(std::vector<int64_t> shape) {
  Problem problem;
  problem.path = "p.py";
  problem.inputs = {{"x", ir::DType::float32, shape, {}, ir::InputKind::argument},
                    {"w", ir::DType::float32, {3}, {1}, ir::InputKind::parameter}};
  problem.outputs = {{"output0", ir::DType::float32, shape, {}}};
  return problem;
}

TEST(CheckCases, AllowsOtherShapesOfArgumentsAndNothingElse) {
  const Problem first = case_of({4, 3});
  Problem none = case_of({0, 3}), same = case_of({4, 3}), typed = case_of({5, 3});
  Problem fewer = case_of({6, 3}), weighted = case_of({7, 3});
  typed.inputs[0].dtype = ir::DType::float64;
  fewer.outputs.clear();
  weighted.inputs[1].shape = {4};
  EXPECT_TRUE(check_cases(std::vector{&first, const_cast<const Problem*>(&none)}));
  struct Case {
    const Problem* other;
    const char* sentence;
  } cases[] = {
      {&same, "p.py: case 1 (x [4, 3]) has the shapes of case 0; remove it from get_input_cases()"},
      {&typed, "case 1 (x [5, 3]) has other inputs than case 0, or inputs of other types"},
      {&fewer, "has another number of outputs than case 0"},
      {&weighted, "has another shape of 'w', which is no argument"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.sentence);
    const Result<void> checked = check_cases(std::vector{&first, c.other});
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, Errc::invalid);
    EXPECT_NE(checked.error().message.find(c.sentence), std::string::npos)
        << checked.error().message;
  }
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

TEST(Draw, ComesBack) {
  const Draw draw{"normal_", {-1.5, 2}};
  const Result<Draw> back = decode_draw(encode(draw));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(*back, draw);
  EXPECT_FALSE(decode_draw(Json{{"method", "normal_"}}));
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

TEST(KernelProfileCodec, NamesCountersOnlyWhereSomethingWasCounted) {
  KernelProfile profile;
  EXPECT_FALSE(encode(profile).contains("counters"));
  profile.missing["spills"] = "objdump is not installed";
  add({.per_call = {{"cycles", 2000}, {"instructions_per_cycle", 2.5}},
       .missing = {{"llc_misses", "this processor does not count it"}}},
      profile);
  EXPECT_EQ(profile.missing.size(), 2u);
  const Result<KernelProfile> back = decode_kernel_profile(encode(profile));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->counters, profile.counters);
  EXPECT_EQ(back->missing, profile.missing);
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
