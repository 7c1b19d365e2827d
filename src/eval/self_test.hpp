// SPDX-License-Identifier: Apache-2.0
//
// The judge examined by kernels whose verdicts are known: tests/data/hostile with verdicts.txt, and
// tests/data/honest, all embedded. They answer one problem, which needs no PyTorch:
// y[r, k] = max(x[r, k], 0) * w[k] and s[r] = sum over k of y[r, k].
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "oracle/fake_oracle.hpp"
#include "os/file_system.hpp"

namespace ke {

inline constexpr int64_t kSelfTestRows = 61, kSelfTestLength = 1003;

struct SelfTestCase {
  std::string name;              // of the file, without suffix
  std::string source;            // with the preamble that all of them share
  std::vector<Verdict> allowed;  // several where the machine decides which comes first
  std::string needs;             // the protection without which it cannot be enforced; or empty
};

// Honest ones first, each kind by name. A hostile source without a row of verdicts.txt has no
// allowed verdict.
std::vector<SelfTestCase> self_test_cases();

// What the oracle of that problem answers.
FakeOracleScript self_test_problem();

// Limits, threads and a seed that suit it; artifacts and lock below the folder. The caller adds
// oracle, target, clock and the runner's command.
EvaluatorOptions self_test_options(const std::filesystem::path& folder);

struct SelfTestOutcome {
  std::string name;
  std::vector<Verdict> allowed;
  Evaluation evaluation;
  bool enforceable = true;  // the machine has the protection that the case needs
  bool right = false;
};

// A judge of its own, with the real builder, rooms and runners.
class SelfTest {
 public:
  // `runner_command` as in EvaluatorOptions; artifacts go to a temporary folder.
  static Result<SelfTest> create(const Target& target, std::vector<std::string> runner_command);

  // Right: the verdict is allowed, and time and reason are there exactly when they should be.
  // Errors are those of the machine.
  Result<SelfTestOutcome> judge(const SelfTestCase& tested);

 private:
  SelfTest() = default;
  std::unique_ptr<os::TemporaryDirectory> folder_;
  std::unique_ptr<os::Clock> clock_;
  std::unique_ptr<Oracle> oracle_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace ke
