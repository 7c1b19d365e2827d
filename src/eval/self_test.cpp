// SPDX-License-Identifier: Apache-2.0
#include "eval/self_test.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "embedded/ke_judge_hostile.hpp"
#include "embedded/ke_judge_honest.hpp"

namespace ke {
namespace {

constexpr int64_t kRows = kSelfTestRows, kLength = kSelfTestLength;

std::vector<Verdict> parse_verdicts(const std::string& text) {
  std::vector<Verdict> verdicts;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (const auto verdict = parse_enum<Verdict>(word)) verdicts.push_back(*verdict);
  }
  return verdicts;
}

struct Row {
  std::vector<Verdict> verdicts;
  std::string needs;
};

// verdicts.txt: name, verdicts separated by commas, a protection or nothing; '#' opens a remark.
std::map<std::string, Row> required_verdicts(std::string_view table) {
  std::map<std::string, Row> required;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, verdicts, needs;
    if (line.starts_with('#') || !(words >> name >> verdicts)) continue;
    words >> needs;
    required[name] = {parse_verdicts(verdicts), needs};
  }
  return required;
}

// Whether the kernel ran in a room without it.
bool lacks(const Evaluation& evaluation, const std::string& protection) {
  if (protection.empty() || evaluation.protections.empty()) return false;
  std::istringstream had(evaluation.protections);
  for (std::string name; std::getline(had, name, ',');) {
    if (name == protection) return false;
  }
  return true;
}

bool is_right(const SelfTestCase& tested, const Evaluation& evaluation) {
  const bool accepted = evaluation.verdict == Verdict::accepted;
  return std::ranges::find(tested.allowed, evaluation.verdict) != tested.allowed.end() &&
         evaluation.measurement.has_value() == accepted && evaluation.detail.empty() == accepted;
}

}  // namespace

std::vector<SelfTestCase> self_test_cases() {
  const std::string preamble(embedded::preamble_h);
  const auto required = required_verdicts(embedded::verdicts_txt);
  std::vector<SelfTestCase> cases;
  const auto add = [&](const embedded::EmbeddedFile& file, bool honest) {
    if (!file.name.ends_with(".cpp")) return;
    SelfTestCase one;
    one.name = file.name.substr(0, file.name.size() - 4);
    one.source = preamble + std::string(file.contents);
    const auto row = required.find(one.name);
    if (honest) {
      one.allowed = {Verdict::accepted};
    } else if (row != required.end()) {
      one.allowed = row->second.verdicts;
      one.needs = row->second.needs;
    }
    cases.push_back(std::move(one));
  };
  for (const auto& file : embedded::ke_judge_honest_files()) add(file, true);
  for (const auto& file : embedded::ke_judge_hostile_files()) add(file, false);
  return cases;
}

FakeOracleScript self_test_problem() {
  FakeOracleScript script;
  Problem& problem = script.problem;
  problem.name = "self-test";
  problem.inputs = {{"x", ir::DType::float32, {kRows, kLength}, {kLength, 1}},
                    {"w", ir::DType::float32, {kLength}, {1}}};
  problem.outputs = {{"y", ir::DType::float32, {kRows, kLength}, {kLength, 1}},
                     {"s", ir::DType::float32, {kRows}, {1}}};
  problem.longest_reduction = kLength;
  problem.unit_roundoff = 0x1p-24;
  script.any_non_finite_kind = true;  // as for every sum: its order decides between inf and NaN
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
  script.own = [](const std::vector<FakeTensor>& inputs) {  // eight partial sums, as a vector has
    FakeTensor y(kRows * kLength), s(kRows);
    for (size_t r = 0; r < kRows; ++r) {
      float partial[8] = {};
      for (size_t k = 0; k < kLength; ++k) {
        const float product = static_cast<float>(std::max(inputs[0][r * kLength + k], 0.0)) *
                              static_cast<float>(inputs[1][k]);
        y[r * kLength + k] = product;
        partial[k % 8] += product;
      }
      for (const float part : partial) s[r] = static_cast<float>(s[r]) + part;
    }
    return std::vector<FakeTensor>{y, s};
  };
  return script;
}

EvaluatorOptions self_test_options(const std::filesystem::path& folder) {
  EvaluatorOptions options;
  options.machine.threads = options.threads = 2;
  options.artifacts = folder / "artifacts";
  options.device_lock = folder / "device.lock";
  options.seed = 20240607;
  options.limits.call_max = Milliseconds(1500);
  options.limits.compile_max = Milliseconds(10'000);
  options.limits.runner_memory_bytes = 512_MiB;
  options.limits.timing_sets_max = 6;
  return options;
}

Result<SelfTest> SelfTest::create(const Target& target, std::vector<std::string> runner_command) {
  SelfTest test;
  test.folder_ =
      std::make_unique<os::TemporaryDirectory>(TRY(os::TemporaryDirectory::create()));
  test.clock_ = std::make_unique<os::SystemClock>();
  test.oracle_ = make_fake_oracle(self_test_problem());
  EvaluatorOptions options = self_test_options(test.folder_->path());
  options.oracle = test.oracle_.get();
  options.target = &target;
  options.clock = test.clock_.get();
  options.runner_command = std::move(runner_command);
  test.evaluator_ = TRY(make_evaluator(options));
  return test;
}

Result<SelfTestOutcome> SelfTest::judge(const SelfTestCase& tested) {
  SelfTestOutcome outcome{.name = tested.name, .allowed = tested.allowed, .evaluation = {}};
  const Artifact artifact = TRY(evaluator_->build(tested.source));
  outcome.evaluation = artifact.failure
                           ? *artifact.failure
                           : TRY(evaluator_->judge(artifact, {.effort = Effort::full}));
  outcome.enforceable = !lacks(outcome.evaluation, tested.needs);
  outcome.right = !outcome.enforceable || is_right(tested, outcome.evaluation);
  return outcome;
}

}  // namespace ke
