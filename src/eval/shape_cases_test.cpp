// SPDX-License-Identifier: Apache-2.0
//
// The evaluator over several shape cases, with judges that say what they are told.
#include "eval/shape_cases.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace ke {
namespace {

// Gives the answer it holds.
class ScriptedJudge final : public Evaluator {
 public:
  Result<Artifact> build(const std::string& source) override {
    ++builds;
    return Artifact{source, std::nullopt, 7};
  }
  Result<Evaluation> judge(const Artifact&, const JudgeOptions& options) override {
    asked.push_back(options);
    if (on_judge) on_judge();
    return answer;
  }
  Result<std::vector<std::string>> admission_flags() override { return flags; }
  int64_t floor_ns() const override { return floor; }

  Evaluation answer;
  std::vector<std::string> flags;
  int64_t floor = 1;
  int builds = 0;
  std::vector<JudgeOptions> asked;
  std::function<void()> on_judge;
};

Evaluation accepted(int64_t time_ns, int64_t eager_ns, std::vector<std::string> flags = {}) {
  Evaluation e;
  e.verdict = Verdict::accepted;
  e.flags = std::move(flags);
  e.judge_ms = 5;
  Measurement m;
  m.time_ns = time_ns;
  m.eager_median_ns = eager_ns;
  m.speedup = static_cast<double>(eager_ns) / static_cast<double>(time_ns);
  m.speedup_low = m.speedup_high = m.speedup;
  e.measurement = m;
  return e;
}

Evaluation rejected(Verdict verdict, std::string detail) {
  Evaluation e;
  e.verdict = verdict;
  e.detail = std::move(detail);
  return e;
}

// Has shapes, and can be stopped. Nothing else is asked of it here.
class QuietOracle final : public Oracle {
 public:
  QuietOracle(int64_t rows, int32_t shape_case) {
    problem_.shape_case = shape_case;
    problem_.case_count = 3;
    problem_.inputs = {{"x", ir::DType::float32, {rows, 8}, {8, 1}, ir::InputKind::argument}};
    problem_.outputs = {{"y", ir::DType::float32, {rows, 8}, {8, 1}}};
  }
  const Problem& problem() const override { return problem_; }
  Result<InputSet> make_set(const SetRequest&) override { return Error{Errc::internal, "unasked"}; }
  void release(int64_t) override {}
  Result<BaselineState> baseline(BaselineKind) override { return BaselineState::absent; }
  Result<Nanoseconds> ring(BaselineKind, const std::vector<int64_t>&) override {
    return Error{Errc::internal, "unasked"};
  }
  void set_running(bool running) override { paused = !running; }

  bool paused = false;

 private:
  Problem problem_;
};

// Cases of 4, 1 and 0 rows.
class ShapeCases : public testing::Test {
 protected:
  ShapeCases() {
    std::vector<ShapeCase> cases;
    for (const int64_t rows : {4, 1, 0}) {
      const auto number = static_cast<int32_t>(oracles_.size());
      oracles_.push_back(std::make_unique<QuietOracle>(rows, number));
      auto judge = std::make_unique<ScriptedJudge>();
      judge->answer = accepted(10'000, 20'000);
      judges_.push_back(judge.get());
      cases.push_back({std::move(judge), oracles_.back().get()});
    }
    evaluator_ = make_case_evaluator(std::move(cases));
  }

  Evaluation judge(const JudgeOptions& options = {}) {
    const Result<Artifact> artifact = evaluator_->build("source");
    return evaluator_->judge(*artifact, options).value();
  }

  std::vector<std::unique_ptr<QuietOracle>> oracles_;
  std::vector<ScriptedJudge*> judges_;
  std::unique_ptr<Evaluator> evaluator_;
};

TEST_F(ShapeCases, BuildsOnceAndAcceptsWhatEveryCaseAccepts) {
  judges_[1]->answer = accepted(10'000, 80'000);
  const Evaluation e = judge();
  EXPECT_EQ(e.verdict, Verdict::accepted);
  EXPECT_EQ(judges_[0]->builds, 1);
  EXPECT_EQ(judges_[1]->builds + judges_[2]->builds, 0);
  EXPECT_EQ(e.judge_ms, 15);
  ASSERT_EQ(e.cases.size(), 3u);
  EXPECT_EQ(e.cases[1].shapes, "x [1, 8]");
  EXPECT_EQ(e.cases[1].measurement->eager_median_ns, 80'000);
  EXPECT_NEAR(*fitness(e), 4, 1e-9) << "of 2 and 8: the empty case does not count";
  EXPECT_EQ(e.measurement->time_ns, 10'000);
}

TEST_F(ShapeCases, TheFirstRejectionDecidesAndIsNamed) {
  judges_[1]->answer = rejected(Verdict::crashed, "signal 11");
  judges_[2]->answer = rejected(Verdict::wrong_output, "never asked");
  const Evaluation e = judge();
  EXPECT_EQ(e.verdict, Verdict::crashed);
  EXPECT_EQ(e.detail, "in case 1 (x [1, 8]): signal 11");
  EXPECT_TRUE(e.cases.empty());
  EXPECT_FALSE(e.measurement.has_value());
  EXPECT_FALSE(fitness(e).has_value());
  EXPECT_TRUE(judges_[2]->asked.empty());
}

TEST_F(ShapeCases, AnEmptyCaseIsProvedButNotCounted) {
  judges_[2]->answer = accepted(1, 9'000, {"too_small"});
  EXPECT_NEAR(*fitness(judge()), 2, 1e-9);
  EXPECT_EQ(judge().cases[2].flags, std::vector<std::string>{"too_small"});
  EXPECT_TRUE(judge().flags.empty());
  judges_[2]->answer = rejected(Verdict::out_of_bounds, "wrote beside output 0");
  EXPECT_EQ(judge().verdict, Verdict::out_of_bounds);
}

TEST_F(ShapeCases, AFlagOfTheWholeIsOneOfEveryCaseThatCounts) {
  judges_[0]->answer = accepted(10'000, 10'000, {"tie", "trivial"});
  judges_[1]->answer = accepted(10'000, 10'000, {"tie"});
  EXPECT_EQ(judge().flags, std::vector<std::string>{"tie"});
  judges_[2]->answer = accepted(1, 9'000, {"tie", kNondeterministicFlag});
  EXPECT_EQ(judge().flags, (std::vector<std::string>{"tie", kNondeterministicFlag}))
      << "a matter of the kernel, in whichever case it shows";
  judges_[0]->flags = judges_[1]->flags = {"random"};
  EXPECT_EQ(*evaluator_->admission_flags(), std::vector<std::string>{"random"});
}

TEST_F(ShapeCases, StopsEachCaseEarlyByItsOwnBestTime) {
  judges_[1]->answer = accepted(40'000, 80'000);
  const Evaluation first = judge();
  EXPECT_EQ(first.measurement->time_ns, 20'000);
  judge({.best_ns = 20'000});
  EXPECT_EQ(judges_[0]->asked.back().best_ns, 10'000);
  EXPECT_EQ(judges_[1]->asked.back().best_ns, 40'000);
  judge({.best_ns = 15'000});
  EXPECT_FALSE(judges_[0]->asked.back().best_ns.has_value()) << "nothing is known of that one";
}

TEST_F(ShapeCases, OneOracleRunsAtATime) {
  int judged = 0;
  for (size_t own = 0; own < 3; ++own) {
    judges_[own]->on_judge = [&, own] {
      ++judged;
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(oracles_[i]->paused, i != own);
    };
  }
  judge();
  EXPECT_EQ(judged, 3);
  for (const auto& oracle : oracles_) EXPECT_FALSE(oracle->paused);
}

TEST_F(ShapeCases, ItsFloorIsTheMeanOverTheCasesThatCount) {
  judges_[0]->floor = 16'000;
  judges_[1]->floor = 10;  // as a time: no less than launching
  judges_[2]->floor = 1'000'000;
  EXPECT_EQ(evaluator_->floor_ns(), 5'657);  // sqrt(16 us * 2 us)
}

TEST_F(ShapeCases, WithoutMeasuringItStillSaysWhatWasProved) {
  for (ScriptedJudge* each : judges_) each->answer.measurement.reset();
  const Evaluation e = judge({.measure = false});
  EXPECT_EQ(e.verdict, Verdict::accepted);
  EXPECT_FALSE(e.measurement.has_value());
  ASSERT_EQ(e.cases.size(), 3u);
  EXPECT_EQ(e.cases[2].shapes, "x [0, 8]");
}

}  // namespace
}  // namespace ke
