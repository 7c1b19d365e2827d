// SPDX-License-Identifier: Apache-2.0
//
// Two figures that a judge stands or falls with:
//   judge_trust self 100 [busy]     times a kernel against itself: how often the reported 95 %
//                                   interval of the speed-up covers 1
//   judge_trust honest 2000 [busy]  judges the honest kernels of the corpus in turn: how many are
//                                   rejected
// busy: another process keeps one processor and the memory occupied meanwhile.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/evaluator.hpp"
#include "eval/runner/host.hpp"
#include "eval/runner/protocol.hpp"
#include "eval/self_test.hpp"
#include "os/file_system.hpp"
#include "self_oracle.hpp"
#include "target/target.hpp"

namespace ke::bench {
namespace {

// A process that streams through memory until it goes.
class BusyNeighbour {
 public:
  explicit BusyNeighbour(bool wanted) {
    if (!wanted) return;
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<double> data(16 << 20, 1.0);
    for (double sum = 0;; data[0] = sum) {
      for (double& value : data) sum += value = value * 0.999 + 1;
    }
  }
  ~BusyNeighbour() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

const std::vector<std::string>& runner_command() {
  static const std::vector<std::string> command = {os::own_executable()->string(),
                                                   "__runner-host"};
  return command;
}

std::string source_named(std::string_view name) {
  for (const SelfTestCase& one : self_test_cases()) {
    if (one.name == name) return one.source;
  }
  return {};
}

// The judge builds and judges one kernel whose baseline is the same library in a runner of its own.
Result<int> time_against_itself(int rounds) {
  const os::TemporaryDirectory folder = TRY(os::TemporaryDirectory::create());
  const std::unique_ptr<Target> target = find_target("x86")->make();
  os::SystemClock clock;
  EvaluatorOptions options = self_test_options(folder.path());
  options.target = target.get();
  options.clock = &clock;
  options.runner_command = runner_command();
  options.limits.timing_sets_max = 64;
  options.machine.llc_bytes = 4 << 20;  // so that 64 small sets count as cold
  const std::unique_ptr<Oracle> builder_oracle = make_fake_oracle(self_test_problem());
  options.oracle = builder_oracle.get();
  const Artifact artifact =
      TRY(TRY(make_evaluator(options))->build(source_named("pool")));
  if (artifact.failure) return Error{Errc::internal, artifact.failure->detail};
  SelfOracle oracle(self_test_problem(),
                    {options.runner_command, options.limits, options.threads, &clock, {}},
                    artifact.built_path);
  options.oracle = &oracle;
  const std::unique_ptr<Evaluator> evaluator = TRY(make_evaluator(options));
  int covered = 0, ties = 0, measured = 0;
  for (int round = 0; round < rounds; ++round) {
    const Evaluation found = TRY(evaluator->judge(artifact, {.effort = Effort::confirm}));
    if (!found.measurement) {
      std::printf("rejected: %s\n", found.detail.c_str());
      continue;
    }
    const Measurement& m = *found.measurement;
    ++measured;
    covered += m.speedup_low <= 1 && 1 <= m.speedup_high;
    for (const std::string& flag : found.flags) ties += flag == "tie";
    std::printf("%d %ld ns, %.4f in [%.4f, %.4f], %zu pairs\n", round,
                static_cast<long>(m.time_ns), m.speedup, m.speedup_low, m.speedup_high,
                m.candidate_ns.size());
    std::fflush(stdout);
  }
  std::printf("self: %d measured, the interval covers 1 in %d, called a tie %d times\n", measured,
              covered, ties);
  return measured == rounds ? 0 : 1;
}

Result<int> judge_honest(int evaluations) {
  const std::unique_ptr<Target> target = find_target("x86")->make();
  SelfTest test = TRY(SelfTest::create(*target, runner_command()));
  std::vector<SelfTestCase> honest;
  for (SelfTestCase& one : self_test_cases()) {
    if (one.allowed == std::vector{Verdict::accepted}) honest.push_back(std::move(one));
  }
  int rejected = 0;
  std::map<std::string, int> flags;
  for (int i = 0; i < evaluations; ++i) {
    const SelfTestOutcome outcome = TRY(test.judge(honest[static_cast<size_t>(i) % honest.size()]));
    for (const std::string& flag : outcome.evaluation.flags) ++flags[flag];
    if (outcome.right) continue;
    ++rejected;
    std::printf("%s: %s\n", outcome.name.c_str(), outcome.evaluation.detail.c_str());
    std::fflush(stdout);
  }
  std::printf("honest: %d evaluations of %zu kernels, %d rejected", evaluations, honest.size(),
              rejected);
  for (const auto& [flag, count] : flags) std::printf(", %s %d", flag.c_str(), count);
  std::printf("\n");
  return rejected == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if ((mode != "self" && mode != "honest") || count < 1) {
    std::fprintf(stderr, "usage: judge_trust self|honest COUNT [busy]\n");
    return 2;
  }
  const BusyNeighbour neighbour(argc > 3 && std::string_view(argv[3]) == "busy");
  const Result<int> code = mode == "self" ? time_against_itself(count) : judge_honest(count);
  if (code) return *code;
  std::fprintf(stderr, "%s\n", code.error().to_string().c_str());
  return 2;
}

}  // namespace
}  // namespace ke::bench

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "__runner-host") {
    return ke::runner_host_main(ke::runner::kHostSocket);
  }
  return ke::bench::main(argc, argv);
}
