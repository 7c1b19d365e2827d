// SPDX-License-Identifier: Apache-2.0
//
// The modules of tests/data/hostile_device before the judge, with the driver played on the
// processor. Those that need a device (and all device code) are tests/device/hostile_check.py's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "eval/device/evaluator.hpp"
#include "oracle/oracle_fixture.hpp"
#include "os/file_system.hpp"

namespace ke {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCorpus = KE_SOURCE_DIR "/tests/data/hostile_device";

// A target of Python modules, which are built by copying.
class ModuleTarget final : public Target {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program&, const ir::FusedKernel&,
                                      const MachineProfile&) const override {
    return {};
  }
  double estimate_ns(const ir::Program&, const ir::FusedKernel&,
                     const MachineProfile&) const override {
    return 0;
  }
  Result<std::string> print_cases(std::span<const CaseKernels>,
                                  const MachineProfile&) const override {
    return Error{Errc::unavailable, "nothing is printed for it"};
  }
  Result<BuildRecipe> recipe(std::string_view) const override {
    BuildRecipe recipe;
    recipe.command = {"{self}", "copy", "{source}", "{output}"};
    recipe.source_name = "kernel.py";
    recipe.output_name = "kernel.out";
    recipe.artifact = ArtifactKind::python_module;
    return recipe;
  }
  Result<std::string> toolchain() const override { return std::string("played"); }
};

// What a file begins with: "# verdicts: crashed, timed_out" and further lines "# key: value".
struct Attack {
  std::string source;
  std::map<std::string, std::string> options;

  bool allows(Verdict verdict) const {
    std::istringstream words(options.at("verdicts"));
    for (std::string word; words >> word;) {
      if (word.ends_with(',')) word.pop_back();
      if (parse_enum<Verdict>(word) == verdict) return true;
    }
    return false;
  }
  std::string option(const std::string& key, const std::string& otherwise) const {
    const auto found = options.find(key);
    return found == options.end() ? otherwise : found->second;
  }
};

Attack read_attack(const std::string& name) {
  Attack attack;
  attack.source = *os::read_file(fs::path(kCorpus) / name, 1 << 20);
  std::istringstream lines(attack.source);
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    attack.options[line.substr(2, colon - 2)] = line.substr(colon + 2);
  }
  if (!attack.options.contains("problem")) {
    attack.source = *os::read_file(fs::path(kCorpus) / "preamble.py", 1 << 20) + attack.source;
  }
  return attack;
}

std::vector<std::string> attacks_without_device() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".py") || name == "preamble.py") continue;
    const Attack attack = read_attack(name);
    if (attack.options.contains("needs") || attack.options.contains("slow")) continue;
    names.push_back(name.substr(0, name.size() - 3));
  }
  std::ranges::sort(names);
  return names;
}

class HostileModules : public OracleTest, public testing::WithParamInterface<std::string> {
 protected:
  static void SetUpTestSuite() {
    OracleTest::SetUpTestSuite();
    folder_ = new os::TemporaryDirectory(*os::TemporaryDirectory::create("ke-hostile"));
    judges_ = new std::map<std::string, Judge>();
  }
  static void TearDownTestSuite() {
    delete judges_;
    delete folder_;
    OracleTest::TearDownTestSuite();
  }

  struct Judge {
    std::unique_ptr<Oracle> oracle;
    std::unique_ptr<Evaluator> evaluator;
  };

  static Judge make_judge(const std::string& problem) {
    Judge judge;
    OracleOptions of_oracle = options_for("");
    of_oracle.problem_path = std::string(kCorpus) + "/problems/" + problem;
    of_oracle.problem_name = problem;
    of_oracle.device = "cpu";
    of_oracle.driver = KE_FAKE_CUDA;
    auto oracle = start_oracle(of_oracle);
    EXPECT_TRUE(oracle) << oracle.error().to_string();
    if (!oracle) return judge;
    judge.oracle = std::move(*oracle);
    DeviceEvaluatorOptions options;
    options.judge.oracle = judge.oracle.get();
    options.judge.target = &target_;
    options.judge.clock = &clock_;
    options.judge.artifacts = folder_->path() / "artifacts";
    options.judge.runner_command = {"unused"};
    options.judge.machine.llc_bytes = 1 << 18;
    options.judge.limits.call_max = Milliseconds(1500);
    options.judge.limits.first_call_max = Milliseconds(3000);
    options.judge.limits.runner_memory_bytes = 4_GiB;
    options.judge.seed = 11;
    options.launcher_command = {"unused"};
    options.driver = KE_FAKE_CUDA;
    options.memory_bytes = 1_GiB;
    options.python = python_with_torch();
    options.cache_dir = cache_->path();
    options.zygote = zygote_;
    judge.evaluator = *make_device_evaluator(options);
    return judge;
  }

  static Evaluation judge(const Attack& attack) {
    const std::string problem = attack.option("problem", "scale_shift.py");
    if (!judges_->contains(problem)) judges_->emplace(problem, make_judge(problem));
    Evaluator* evaluator = judges_->at(problem).evaluator.get();
    if (evaluator == nullptr) return {};
    const Artifact artifact = *evaluator->build(attack.source);
    const bool measure = attack.option("command", "verify") == "bench";
    const Result<Evaluation> evaluation =
        evaluator->judge(artifact, {.effort = Effort::full, .measure = measure});
    EXPECT_TRUE(evaluation) << "no verdict: " << evaluation.error().to_string();
    return evaluation.value_or(Evaluation{});
  }

  static inline os::TemporaryDirectory* folder_ = nullptr;
  static inline std::map<std::string, Judge>* judges_ = nullptr;
  static inline os::SystemClock clock_;
  static inline ModuleTarget target_;
};

TEST_P(HostileModules, GetTheVerdictThatTheyMerit) {
  const Attack attack = read_attack(GetParam() + ".py");
  const Evaluation evaluation = judge(attack);
  EXPECT_TRUE(attack.allows(evaluation.verdict))
      << enum_name(evaluation.verdict) << " (" << evaluation.detail << "), should be "
      << attack.options.at("verdicts");
  Attack honest = read_attack("honest_library.py");
  honest.options.erase("command");
  const Evaluation after = judge(honest);
  EXPECT_EQ(after.verdict, Verdict::accepted) << "nothing is right any more: " << after.detail;
}

INSTANTIATE_TEST_SUITE_P(Corpus, HostileModules, testing::ValuesIn(attacks_without_device()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "copy") == 0) {
    const auto source = ke::os::read_file(argv[2], 1 << 20);
    return source && ke::os::write_file_atomically(argv[3], *source) ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
