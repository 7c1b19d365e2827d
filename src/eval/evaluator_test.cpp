// SPDX-License-Identifier: Apache-2.0
//
// The judge end to end, with real builds, rooms and runners and a fake oracle: every source below
// tests/data/hostile gets its verdict, every one below tests/data/honest is accepted. Adding a case
// is one file and, for a hostile one, one row of verdicts.txt.
#include "eval/evaluator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "eval/runner/host.hpp"
#include "eval/runner/protocol.hpp"
#include "oracle/fake_oracle.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

constexpr int64_t kRows = 61, kLength = 1003;
const std::filesystem::path kData = std::filesystem::path(KE_SOURCE_DIR) / "tests" / "data";

// Builds with g++ at a level that compiles fast.
class PlainTarget final : public Target {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program&, const ir::FusedKernel&,
                                      const MachineProfile&) const override {
    return {};
  }
  double estimate_ns(const ir::Program&, const ir::FusedKernel&,
                     const MachineProfile&) const override {
    return 0;
  }
  Result<std::string> print(const ir::Program&, std::span<const ir::FusedKernel>,
                            const MachineProfile&) const override {
    return Error{Errc::unavailable, "this target prints nothing"};
  }
  Result<BuildRecipe> recipe(std::string_view source) const override {
    if (source.find("ke:flags -fplugin") != std::string_view::npos) {
      return Error{Errc::refused, "the flag -fplugin is not allowed"};
    }
    return BuildRecipe{{"g++", "-std=c++20", "-O1", "-mavx2", "-shared", "-fPIC", "-fopenmp",
                        "{source}", "-o", "{output}"},
                       "kernel.cpp",
                       "kernel.so"};
  }
  Result<std::string> toolchain() const override { return std::string("g++ under test"); }
};

FakeOracleScript script() {
  FakeOracleScript script;
  Problem& problem = script.problem;
  problem.name = "test";
  problem.inputs = {{"x", ir::DType::float32, {kRows, kLength}, {kLength, 1}},
                    {"w", ir::DType::float32, {kLength}, {1}}};
  problem.outputs = {{"y", ir::DType::float32, {kRows, kLength}, {kLength, 1}},
                     {"s", ir::DType::float32, {kRows}, {1}}};
  problem.longest_reduction = kLength;
  problem.unit_roundoff = 0x1p-24;
  script.truth = [](const std::vector<FakeTensor>& inputs) {
    FakeTensor y(kRows * kLength), s(kRows);
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < kLength; ++k) {
        y[r * kLength + k] = std::max(inputs[0][r * kLength + k], 0.0) * inputs[1][k];
        s[r] += y[r * kLength + k];
      }
    }
    return std::vector<FakeTensor>{y, s};
  };
  return script;
}

class Bench {
 public:
  explicit Bench(FakeOracleScript from = script())
      : folder_(*os::TemporaryDirectory::create()), oracle_(make_fake_oracle(std::move(from))) {
    EvaluatorOptions options;
    options.oracle = oracle_.get();
    options.target = &target_;
    options.clock = &clock_;
    options.machine.threads = 2;
    options.artifacts = folder_.path() / "artifacts";
    options.runner_command = {os::own_executable()->string(), "__runner-host"};
    options.threads = 2;
    options.seed = 20240607;
    options.device_lock = folder_.path() / "device.lock";
    options.limits.call_max = Milliseconds(1500);
    options.limits.runner_memory_bytes = 512_MiB;
    options.limits.timing_sets_max = 6;
    evaluator_ = std::move(*make_evaluator(options));
  }

  Evaluation judge(const std::string& source, JudgeOptions options = {.effort = Effort::full}) {
    const Result<Artifact> artifact = evaluator_->build(source);
    if (!artifact) return broken(artifact.error());
    const Result<Evaluation> evaluation = evaluator_->judge(*artifact, options);
    return evaluation ? *evaluation : broken(evaluation.error());
  }
  Evaluator& evaluator() { return *evaluator_; }
  std::filesystem::path artifacts() const { return folder_.path() / "artifacts"; }

 private:
  static Evaluation broken(const Error& error) {
    ADD_FAILURE() << error.to_string();
    return {};
  }
  os::TemporaryDirectory folder_;
  os::SystemClock clock_;
  PlainTarget target_;
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<Evaluator> evaluator_;
};

std::string source_of(const std::filesystem::path& path) {
  return *os::read_file(kData / "hostile" / "preamble.h", 1 << 20) + *os::read_file(path, 1 << 20);
}

std::map<std::string, std::string> required_verdicts() {
  std::map<std::string, std::string> verdicts;
  std::istringstream lines(*os::read_file(kData / "hostile" / "verdicts.txt", 1 << 20));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, verdict;
    if (!line.empty() && line[0] != '#' && words >> name >> verdict) verdicts[name] = verdict;
  }
  return verdicts;
}

std::vector<std::filesystem::path> sources_below(const char* folder) {
  std::vector<std::filesystem::path> paths;
  const std::vector<std::string> names = *os::list_directory(kData / folder);
  for (const std::string& name : names) {
    if (name.ends_with(".cpp")) paths.push_back(kData / folder / name);
  }
  return paths;
}

// KE_ONLY=name runs one case by hand.
bool chosen(const std::string& name) {
  const char* only = getenv("KE_ONLY");
  return !only || name == only;
}

TEST(Judge, GivesEveryHostileKernelItsVerdict) {
  Bench bench;
  const auto verdicts = required_verdicts();
  const auto sources = sources_below("hostile");
  EXPECT_EQ(sources.size(), verdicts.size());
  for (const auto& path : sources) {
    const std::string name = path.stem().string();
    if (!chosen(name)) continue;
    SCOPED_TRACE(name);
    ASSERT_TRUE(verdicts.count(name)) << "no row in verdicts.txt";
    const Evaluation evaluation = bench.judge(source_of(path));
    const std::string verdict(enum_name(evaluation.verdict));
    const std::string& allowed = verdicts.at(name);
    EXPECT_NE(("," + allowed + ",").find("," + verdict + ","), std::string::npos)
        << verdict << " instead of " << allowed << ": " << evaluation.detail;
    EXPECT_EQ(evaluation.measurement.has_value(), evaluation.verdict == Verdict::accepted);
    EXPECT_EQ(evaluation.detail.empty(), evaluation.verdict == Verdict::accepted);
    if (getenv("KE_SHOW")) {
      std::printf("%-26s %-18s %s (%ld + %ld ms)\n", name.c_str(), verdict.c_str(),
                  evaluation.detail.c_str(), static_cast<long>(evaluation.build_ms),
                  static_cast<long>(evaluation.judge_ms));
    }
  }
}

TEST(Judge, AcceptsHonestKernelsThatLookSuspicious) {
  Bench bench;
  for (const auto& path : sources_below("honest")) {
    if (!chosen(path.stem().string())) continue;
    SCOPED_TRACE(path.stem().string());
    const Evaluation evaluation = bench.judge(source_of(path));
    EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
    ASSERT_TRUE(evaluation.measurement.has_value());
    EXPECT_GT(evaluation.measurement->time_ns, 0);
    EXPECT_EQ(evaluation.measurement->eager_median_ns, 1'000'000);
    EXPECT_LE(evaluation.measurement->speedup_low, evaluation.measurement->speedup);
    EXPECT_GE(evaluation.measurement->speedup_high, evaluation.measurement->speedup);
    EXPECT_EQ(evaluation.errors.size(), 2u);
    EXPECT_EQ(evaluation.kernel_class, "own");
  }
}

TEST(Judge, ConfirmsWithFreshSeeds) {
  Bench bench;
  const std::string source = source_of(kData / "honest" / "plain.cpp");
  EXPECT_FALSE(bench.judge(source, {.effort = Effort::screen}).confirmed);
  const Evaluation evaluation = bench.judge(source, {.effort = Effort::confirm});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.confirmed);
  EXPECT_GE(evaluation.measurement->candidate_ns.size(), 15u);
}

TEST(Judge, StopsEarlyWhenClearlySlower) {
  Bench bench;
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"),
                                            {.effort = Effort::screen, .best_ns = 1000});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.stopped_early);
  EXPECT_EQ(evaluation.measurement->candidate_ns.size(), 2u);
}

TEST(Judge, ChecksWithoutTimingWhenNotAsked) {
  Bench bench;
  const Evaluation evaluation =
      bench.judge(source_of(kData / "honest" / "plain.cpp"), {.measure = false});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_FALSE(evaluation.measurement.has_value());
}

TEST(Builder, BuildsOnceAndRefusesForbiddenFlags) {
  Bench bench;
  const std::string source = source_of(kData / "honest" / "plain.cpp");
  const Result<Artifact> first = bench.evaluator().build(source);
  const Result<Artifact> again = bench.evaluator().build("// a remark\n" + source + "\n\n");
  ASSERT_TRUE(first && again);
  EXPECT_FALSE(first->failure.has_value());
  EXPECT_EQ(first->library_path, again->library_path);
  const Result<Artifact> refused = bench.evaluator().build("// ke:flags -fplugin=x\n" + source);
  ASSERT_TRUE(refused && refused->failure.has_value());
  EXPECT_EQ(refused->failure->verdict, Verdict::policy_violation);
  const Result<Artifact> failed = bench.evaluator().build("int f( {");
  const Result<Artifact> still = bench.evaluator().build("int f( {");
  ASSERT_TRUE(failed && still && still->failure.has_value());
  EXPECT_EQ(still->failure->detail, failed->failure->detail);
  EXPECT_NE(failed->failure->diagnostics.find("error"), std::string::npos);
}

TEST(Admission, FlagsAProblemWhoseAnswerIsConstant) {
  Bench honest;
  EXPECT_TRUE(honest.evaluator().admission_flags()->empty());
  FakeOracleScript constant = script();
  constant.truth = [](const std::vector<FakeTensor>&) {
    return std::vector<FakeTensor>{FakeTensor(kRows * kLength, 0.0), FakeTensor(kRows, 0.0)};
  };
  Bench bench(std::move(constant));
  const auto flags = bench.evaluator().admission_flags();
  ASSERT_TRUE(flags);
  EXPECT_EQ(*flags, std::vector<std::string>{"trivial"});
}

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "__runner-host") {
    return ke::runner_host_main(ke::runner::kHostSocket);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
