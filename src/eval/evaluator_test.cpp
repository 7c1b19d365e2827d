// SPDX-License-Identifier: Apache-2.0
//
// The judge end to end, with real builds, rooms and runners and a fake oracle: every source below
// tests/data/hostile gets its verdict, every one below tests/data/honest is accepted. Adding a case
// is one file and, for a hostile one, one row of verdicts.txt.
#include "eval/evaluator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "eval/judge_fixture.hpp"
#include "eval/runner/host.hpp"
#include "eval/runner/protocol.hpp"

namespace ke {
namespace {

using judge_test::JudgeBench;
using judge_test::kData;
using judge_test::kLength;
using judge_test::kRows;
using judge_test::script;
using judge_test::source_of;

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
  JudgeBench bench;
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
  JudgeBench bench;
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
  JudgeBench bench;
  const std::string source = source_of(kData / "honest" / "plain.cpp");
  EXPECT_FALSE(bench.judge(source, {.effort = Effort::screen}).confirmed);
  const Evaluation evaluation = bench.judge(source, {.effort = Effort::confirm});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.confirmed);
  EXPECT_GE(evaluation.measurement->candidate_ns.size(), 15u);
}

TEST(Judge, StopsEarlyWhenClearlySlower) {
  JudgeBench bench;
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"),
                                            {.effort = Effort::screen, .best_ns = 1000});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.stopped_early);
  EXPECT_EQ(evaluation.measurement->candidate_ns.size(), 2u);
}

TEST(Judge, ChecksWithoutTimingWhenNotAsked) {
  JudgeBench bench;
  const Evaluation evaluation =
      bench.judge(source_of(kData / "honest" / "plain.cpp"), {.measure = false});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_FALSE(evaluation.measurement.has_value());
}

TEST(Builder, BuildsOnceAndRefusesForbiddenFlags) {
  JudgeBench bench;
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
  JudgeBench honest;
  const auto none = honest.evaluator().admission_flags();
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  FakeOracleScript constant = script();
  constant.truth = [](const std::vector<FakeTensor>&) {
    return std::vector<FakeTensor>{FakeTensor(kRows * kLength, 0.0), FakeTensor(kRows, 0.0)};
  };
  JudgeBench bench(std::move(constant));
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
