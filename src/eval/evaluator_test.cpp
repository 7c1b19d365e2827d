// SPDX-License-Identifier: Apache-2.0
//
// The judge end to end, with real builds, rooms and runners and a fake oracle.
#include "eval/evaluator.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "eval/judge_fixture.hpp"
#include "eval/runner/host.hpp"
#include "eval/runner/protocol.hpp"
#include "eval/timing.hpp"
#include "eval/self_test.hpp"

namespace ke {
namespace {

using judge_test::JudgeBench;
using judge_test::kData;
using judge_test::source_of;

// A built kernel as the judge hands it into a room.
os::FileDescriptor in_memory(const std::string& path) {
  const std::string bytes = *os::read_file(path, 1 << 24);
  const auto size = static_cast<int64_t>(bytes.size());
  os::SharedMemory memory = std::move(*os::SharedMemory::create(size));
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  EXPECT_TRUE(memory.seal_future_writes());
  return std::move(*memory.reopen_read_only());
}

TEST(Judge, MeasuresWhatItAccepts) {
  JudgeBench bench;
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  ASSERT_TRUE(evaluation.measurement.has_value());
  EXPECT_GT(evaluation.measurement->time_ns, 0);
  EXPECT_EQ(evaluation.measurement->eager_median_ns, 1'000'000);
  EXPECT_LE(evaluation.measurement->speedup_low, evaluation.measurement->speedup);
  EXPECT_GE(evaluation.measurement->speedup_high, evaluation.measurement->speedup);
  EXPECT_EQ(evaluation.errors.size(), 2u);
  EXPECT_EQ(evaluation.kernel_class, "own");
  EXPECT_FALSE(evaluation.measurement->warm_ns) << "the rotation fits the cache: all is warm";
}

TEST(Judge, MeasuresAlsoWithAWarmCacheWhereTheRotationIsCold) {
  MachineProfile small;
  small.llc_bytes = 1 << 18;
  JudgeBench bench(self_test_problem(), 6, small);
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  ASSERT_TRUE(evaluation.measurement.has_value()) << evaluation.detail;
  EXPECT_TRUE(evaluation.measurement->cold);
  EXPECT_GT(evaluation.measurement->warm_ns.value_or(0), 0);
  EXPECT_EQ(evaluation.measurement->warm_baseline_ns, 1'000'000);
}

TEST(Judge, RefusesATimeInWhichTheMachineCannotMoveTheBytes) {
  MachineProfile slow;  // 10 MB/s: even the honest kernel is too fast for it
  slow.bandwidth_single = slow.bandwidth_all = slow.bandwidth_llc_all = 1e7;
  JudgeBench bench(self_test_problem(), 6, slow);
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  EXPECT_EQ(evaluation.verdict, Verdict::implausible_time);
  EXPECT_FALSE(evaluation.measurement.has_value());
}

// A kernel whose calls touch pages that were never touched before: the kernel's counter must see
// them, also where they are touched by the threads that the runner starts when it loads.
TEST(Judge, CountsTheEventsOfOneCall) {
  constexpr int kPages = 40;
  const std::string touch =
      "#include <sys/mman.h>\nstatic void touch(int64_t, void*) {\n  const size_t bytes = " +
      std::to_string(kPages) +
      " * 4096;\n  char* p = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, "
      "MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));\n  madvise(p, bytes, MADV_NOHUGEPAGE);\n  for "
      "(size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(p)[i] = 1;\n  munmap(p, "
      "bytes);\n}\nextern \"C\" int ke_launch(const ke_tensor*, int32_t, ke_tensor*, int32_t, "
      "ke_context* c) {\n  c->parallel_for(c->pool, 8, touch, nullptr);\n  return 0;\n}\n";
  JudgeBench bench;
  const Result<EventCounts> counts =
      bench.evaluator().count_events("#include <kernelevolve/kernel.h>\n" + touch);
  ASSERT_TRUE(counts) << counts.error().to_string();
  if (counts->missing.contains("page_faults")) GTEST_SKIP() << counts->missing.at("page_faults");
  EXPECT_GE(counts->per_call.at("page_faults"), 8 * kPages);
  EXPECT_LT(counts->per_call.at("page_faults"), 8 * kPages + kPages);
  EXPECT_GT(counts->per_call.at("task_clock_ns"), 0);
  EXPECT_NE(counts->per_call.contains("cycles"), counts->missing.contains("hardware_counters"));
}

TEST(Judge, AKernelThatFailsWhileItIsCountedHasNoCounts) {
  JudgeBench bench;
  const Result<EventCounts> counts = bench.evaluator().count_events(
      "#include <kernelevolve/kernel.h>\nextern \"C\" int ke_launch(const ke_tensor*, int32_t, "
      "ke_tensor*, int32_t, ke_context*) { return 3; }\n");
  ASSERT_TRUE(counts) << counts.error().to_string();
  EXPECT_TRUE(counts->per_call.empty());
  EXPECT_NE(counts->missing.at("counters").find("returned 3"), std::string::npos);
  EXPECT_FALSE(bench.evaluator().count_events("this is no C++\n"));
}

// What is subtracted was timed in a bad moment: the kernel then seems to take no time at all.
TEST(Timing, MeasuresAnewBeforeItCallsATimeImpossible) {
  JudgeBench bench;
  const Result<Artifact> artifact =
      bench.evaluator().build(source_of(kData / "honest" / "plain.cpp"));
  ASSERT_TRUE(artifact);
  os::SystemClock clock;
  const std::unique_ptr<Oracle> oracle = make_fake_oracle(self_test_problem());
  const Limits limits;
  MachineProfile machine;
  SetStore sets(*oracle, machine, limits, 1);
  Baselines baselines(*oracle);
  ASSERT_TRUE(baselines.stale());
  ASSERT_TRUE(baselines.measure_all({1}));
  const auto host = runner::Host::start(
      {{os::own_executable()->string(), "__runner-host"}, limits, 1, &clock, {}});
  ASSERT_TRUE(host) << host.error().to_string();
  Result<runner::Runner> runner = (*host)->spawn();
  ASSERT_TRUE(runner);
  const auto loaded = runner->load(in_memory(artifact->built_path).get(), oracle->problem(),
                                   std::chrono::seconds(10));
  ASSERT_TRUE(loaded && !runner::failure_of(*loaded));
  std::map<int32_t, EmptyBatch> empty_batches;
  for (int32_t calls = 1; calls <= runner::kCallsPerBatchMax; ++calls) {
    empty_batches[calls] = {int64_t{3'600'000'000'000}, 0};
  }
  const os::FileDescriptor fresh = in_memory(artifact->built_path);
  const TimingOptions options{.oracle = oracle.get(),
                              .clock = &clock,
                              .host = host->get(),
                              .sets = &sets,
                              .baselines = &baselines,
                              .empty_batches = &empty_batches,
                              .machine = machine,
                              .judge = {.effort = Effort::screen},
                              .call_max = std::chrono::seconds(5),
                              .first_estimate = std::chrono::microseconds(50),
                              .kernel_fd = fresh.get()};
  Rng rng(1);
  const Result<TimingResult> timed = time_candidate(*runner, options, rng, nullptr);
  ASSERT_TRUE(timed) << timed.error().to_string();
  EXPECT_FALSE(timed->failure) << timed->failure->detail;
  EXPECT_GT(timed->measurement.time_ns, 1000);
}

// The same for a baseline: what is subtracted from it was timed in a bad moment.
TEST(Timing, MeasuresABaselineAnewThatSeemsToTakeNoTime) {
  FakeOracleScript script = self_test_problem();
  script.slow_empty_rings = 9;  // all that are taken at first
  JudgeBench bench(std::move(script));
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  ASSERT_TRUE(evaluation.measurement.has_value()) << evaluation.detail;
  EXPECT_EQ(evaluation.measurement->eager_median_ns, 1'000'000);
  EXPECT_GT(evaluation.measurement->speedup, 1);
}

// Twice the calls take twice as long, so a floor that was estimated too high rejects nobody.
TEST(Judge, AcceptsATimeBelowTheFloorThatBearsQuestioning) {
  FakeOracleScript script = self_test_problem();
  script.problem.flops = 1'000'000'000'000;
  JudgeBench bench(std::move(script));
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  ASSERT_TRUE(evaluation.measurement.has_value());
  EXPECT_LT(evaluation.measurement->time_ns, bench.evaluator().floor_ns());
}

// --- Nothing is left behind ---------------------------------------------------------------------

int64_t entries(const std::filesystem::path& folder, std::string_view with = "") {
  std::error_code error;
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    count += entry.path().filename().string().find(with) != std::string::npos ? 1 : 0;
  }
  return count;
}

int64_t lines_of(const std::filesystem::path& file) {
  std::ifstream text(file);
  return std::count(std::istreambuf_iterator<char>(text), {}, '\n');
}

// What an evaluation could leak, on the whole machine where that is where it would show.
std::map<std::string, int64_t> footprint() {
  std::error_code error;
  int64_t cgroups = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator("/sys/fs/cgroup", error)) {
    cgroups += entry.is_directory(error) ? 1 : 0;
  }
  return {{"file descriptors", entries("/proc/self/fd")},
          {"threads", entries("/proc/self/task")},
          {"children", lines_of("/proc/self/task/" + std::to_string(getpid()) + "/children")},
          {"mounts", lines_of("/proc/self/mounts")},
          {"cgroups", cgroups},
          {"temporary files", entries(std::filesystem::temp_directory_path(), "kernelevolve")}};
}

// KE_EVALUATIONS=1000 runs as many by hand.
TEST(Judge, LeavesNothingBehind) {
  const char* wanted = getenv("KE_EVALUATIONS");
  const int count = wanted ? std::atoi(wanted) : 60;
  JudgeBench bench;
  std::vector<Artifact> artifacts;
  for (const SelfTestCase& one : self_test_cases()) {
    static const std::set<std::string> chosen = {"plain", "pool", "aborts", "leaves_a_process",
                                                 "writes_past_scratch", "writes_input"};
    if (!chosen.contains(one.name)) continue;
    const Result<Artifact> artifact = bench.evaluator().build(one.source);
    ASSERT_TRUE(artifact.has_value());
    artifacts.push_back(*artifact);
  }
  ASSERT_EQ(artifacts.size(), 6u);
  const auto run = [&](int evaluations) {
    for (int i = 0; i < evaluations; ++i) {
      const Artifact& artifact = artifacts[static_cast<size_t>(i) % artifacts.size()];
      ASSERT_TRUE(bench.evaluator().judge(artifact, {}).has_value());
    }
  };
  run(2 * static_cast<int>(artifacts.size()));  // what is made once and kept is there now
  const auto before = footprint();
  const int64_t disk = entries(bench.artifacts());
  run(count);
  EXPECT_EQ(footprint(), before);
  EXPECT_EQ(entries(bench.artifacts()), disk);
}

// The corpus itself is examined by `kernelevolve doctor --judge`, which ctest runs.
TEST(SelfTest, HasAVerdictForEveryKernel) {
  const std::vector<SelfTestCase> cases = self_test_cases();
  std::set<std::string> names;
  for (const SelfTestCase& one : cases) {
    EXPECT_FALSE(one.allowed.empty()) << one.name << " has no row in verdicts.txt";
    EXPECT_TRUE(names.insert(one.name).second) << one.name << " is there twice";
  }
  std::istringstream lines(*os::read_file(kData / "hostile" / "verdicts.txt", 1 << 20));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::string name = line.substr(0, line.find(' '));
    EXPECT_TRUE(names.contains(name)) << "there is no hostile kernel " << name;
  }
}

// Linked by a list, it runs in a room that shows the library, and the report says what it is.
TEST(Judge, AdmitsListedLibrariesAlone) {
  const std::string source =
      "// ke:flags -lsqlite3\n#include <sqlite3.h>\n" +
      *os::read_file(kData / "hostile" / "preamble.h", 1 << 20) +
      "KERNEL { return sqlite3_libversion_number() > 0 ? honest(in, out) : 1; }\n";
  const Evaluation refused = JudgeBench().judge(source);
  EXPECT_EQ(refused.verdict, Verdict::policy_violation);
  EXPECT_NE(refused.detail.find("sqlite3"), std::string::npos) << refused.detail;
  const auto listed = parse_library_policy("sqlite3");
  ASSERT_TRUE(listed) << listed.error().to_string();
  JudgeBench bench(self_test_problem(), 6, {}, *listed);
  const Evaluation accepted = bench.judge(source);
  EXPECT_EQ(accepted.verdict, Verdict::accepted) << accepted.detail;
  EXPECT_EQ(accepted.kernel_class, "mixed");
  const Evaluation own = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  EXPECT_EQ(own.kernel_class, "own");
}

// --- Determinism --------------------------------------------------------------------------------

JudgeBench budget_bench(FakeOracleScript script = self_test_problem()) {
  return JudgeBench(std::move(script), 6, {}, {}, Determinism::budget);
}

bool is_flagged(const Evaluation& evaluation) {
  return std::ranges::find(evaluation.flags, kNondeterministicFlag) != evaluation.flags.end();
}

TEST(Determinism, ACandidateWhoseSumsComeInAnyOrderIsAcceptedByBudgetAlone) {
  const std::string source = source_of(kData / "hostile" / "sums_in_order_of_arrival.cpp");
  const Evaluation bitwise = JudgeBench().judge(source);
  EXPECT_EQ(bitwise.verdict, Verdict::nondeterministic) << bitwise.detail;
  JudgeBench bench = budget_bench();
  for (const Effort effort : {Effort::screen, Effort::full, Effort::confirm}) {
    const Evaluation budget = bench.judge(source, {.effort = effort});
    EXPECT_EQ(budget.verdict, Verdict::accepted) << budget.detail;
    EXPECT_TRUE(budget.measurement.has_value());
    EXPECT_TRUE(is_flagged(budget));
  }
  const Evaluation plain = bench.judge(source_of(kData / "honest" / "plain.cpp"));
  EXPECT_EQ(plain.verdict, Verdict::accepted) << plain.detail;
  EXPECT_FALSE(is_flagged(plain)) << "its bits are the same every time";
}

// Right in the eight calls of the first run, so that only further ones can tell.
TEST(Determinism, ManyRunsFindWhatIsWrongOnceInAWhile) {
  const std::string source = source_of(kData / "hostile" / "wrong_once_in_a_while.cpp");
  JudgeBench bench = budget_bench();
  const Evaluation evaluation = bench.judge(source, {.effort = Effort::full, .measure = false});
  EXPECT_EQ(evaluation.verdict, Verdict::nondeterministic);
  EXPECT_NE(evaluation.detail.find("further run"), std::string::npos) << evaluation.detail;
  EXPECT_EQ(bench.judge(source).verdict, Verdict::nondeterministic);
}

// A run within the tolerance whose pooled error is beyond the budget: one element in 61 by 3e-5.
TEST(Determinism, EachRunHasToKeepTheBudgetByItself) {
  std::string source = source_of(kData / "hostile" / "wrong_once_in_a_while.cpp");
  const size_t at = source.find("0.9375f");
  ASSERT_NE(at, std::string::npos);
  source.replace(at, 7, "1.00003f");
  const Evaluation evaluation = budget_bench().judge(source, {.measure = false});
  EXPECT_EQ(evaluation.verdict, Verdict::nondeterministic) << evaluation.detail;
  EXPECT_NE(evaluation.detail.find("within the tolerance"), std::string::npos)
      << evaluation.detail;
}

// Two calls agree while checking; the timed ones do not.
TEST(Determinism, WhatDiffersOnlyWhileTimingIsRunAgainToo) {
  const auto after_calls = [](const std::string& wrong) {
    return *os::read_file(kData / "hostile" / "preamble.h", 1 << 20) +
           "#include <time.h>\nKERNEL {\n"
           "  static int calls = 0;\n  honest(in, out);\n  timespec now;\n"
           "  clock_gettime(CLOCK_MONOTONIC, &now);\n  float* s = (float*)out[1].data;\n"
           "  if (++calls > 9) s[now.tv_nsec / 64 % 61] *= 1.0000001f;\n" +
           wrong + "  return 0;\n}\n";
  };
  JudgeBench bench = budget_bench();
  const Evaluation fine = bench.judge(after_calls(""));
  EXPECT_EQ(fine.verdict, Verdict::accepted) << fine.detail;
  EXPECT_TRUE(is_flagged(fine));
  const std::string source = after_calls("  if (calls > 9 && calls % 40 == 0) s[3] = 1e9f;\n");
  const Evaluation wrong = bench.judge(source);
  EXPECT_NE(wrong.verdict, Verdict::accepted);
  EXPECT_FALSE(wrong.measurement.has_value());
}

TEST(Determinism, IntegersAreExactUnderEveryPolicy) {
  FakeOracleScript script;
  script.problem.inputs = {{"x", ir::DType::float32, {64}, {1}}};
  script.problem.outputs = {{"n", ir::DType::int32, {1}, {1}}};
  script.truth = [](const std::vector<FakeTensor>&) { return std::vector<FakeTensor>{{7}}; };
  const std::string source =
      "#include <kernelevolve/kernel.h>\n"
      "extern \"C\" int ke_launch(const ke_tensor*, int32_t, ke_tensor* out, int32_t, "
      "ke_context*) {\n  static int calls = 0;\n"
      "  *(int32_t*)out[0].data = ++calls == 2 ? 8 : 7;\n  return 0;\n}\n";
  const Evaluation evaluation = budget_bench(script).judge(source, {.measure = false});
  EXPECT_EQ(evaluation.verdict, Verdict::nondeterministic) << evaluation.detail;
}

// Where bits may differ, an answer kept from an earlier call must still show.
TEST(Determinism, WhatFoolsNobodyBitForBitFoolsNobodyByBudget) {
  JudgeBench bench = budget_bench();
  for (const char* name :
       {"remembers_by_address", "remembers_by_fingerprint", "skips_what_is_overwritten",
        "right_until_call_fifty", "right_at_both_ends", "half_precision", "right_for_one_address",
        "trusts_scratch_to_be_zero"}) {
    const std::string source = source_of(kData / "hostile" / (std::string(name) + ".cpp"));
    const Evaluation evaluation = bench.judge(source);
    EXPECT_NE(evaluation.verdict, Verdict::accepted) << name;
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

// What cannot be the better baseline is not timed in every pair; a near one is.
TEST(Judge, TimesAClearlySlowerTorchCompileInTheFirstPairsAlone) {
  const auto confirmed = [](int64_t compile_ns) {
    FakeOracleScript script = self_test_problem();
    script.compile_state = BaselineState::ready;
    script.compile_call = Nanoseconds(compile_ns);
    JudgeBench bench(std::move(script));
    return bench.judge(source_of(kData / "honest" / "plain.cpp"), {.effort = Effort::confirm});
  };
  const Evaluation slower = confirmed(5'000'000), near = confirmed(1'200'000);
  ASSERT_TRUE(slower.measurement && near.measurement);
  EXPECT_EQ(slower.measurement->compile_ns.size(), 6u);
  EXPECT_GE(slower.measurement->eager_ns.size(), 15u);
  EXPECT_EQ(slower.measurement->compile_median_ns, 5'000'000);
  EXPECT_EQ(slower.measurement->eager_median_ns, 1'000'000);
  EXPECT_EQ(near.measurement->compile_ns.size(), near.measurement->eager_ns.size());
  const Evaluation faster = confirmed(500'000);
  ASSERT_TRUE(faster.measurement.has_value());
  EXPECT_EQ(faster.measurement->compile_ns.size(), faster.measurement->candidate_ns.size());
}

TEST(Judge, StopsEarlyWhenClearlySlower) {
  JudgeBench bench;
  const Evaluation evaluation = bench.judge(source_of(kData / "honest" / "plain.cpp"),
                                            {.effort = Effort::screen, .best_ns = 1000});
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.stopped_early);
  EXPECT_EQ(evaluation.measurement->candidate_ns.size(), 2u);
}

// A person is told the values; what a search keeps, and a model may read, holds none.
TEST(Judge, TellsExpectedValuesToPeopleAlone) {
  JudgeBench bench;
  const std::string source = source_of(kData / "hostile" / "one_wrong_element.cpp");
  const std::string told =
      bench.judge(source, {.effort = Effort::full, .tell_values = true}).detail;
  EXPECT_NE(told.find("(expected "), std::string::npos) << told;
  EXPECT_NE(told.find(", got "), std::string::npos) << told;
  for (const Effort effort : {Effort::screen, Effort::full, Effort::confirm}) {
    const std::string detail = bench.judge(source, {.effort = effort}).detail;
    EXPECT_FALSE(detail.empty());
    EXPECT_EQ(detail.find("expected"), std::string::npos) << detail;
  }
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
  EXPECT_EQ(first->built_path, again->built_path);
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
  FakeOracleScript constant = self_test_problem();
  constant.truth = [](const std::vector<FakeTensor>&) {
    return std::vector<FakeTensor>{FakeTensor(kSelfTestRows * kSelfTestLength, 0.0),
                                   FakeTensor(kSelfTestRows, 0.0)};
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
