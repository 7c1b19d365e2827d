// SPDX-License-Identifier: Apache-2.0
//
// The judge of device code end to end: real builds, rooms, launchers and a real oracle, with the
// driver played on the processor (tests/device). Kernels are host code that this program compiles;
// what only a device can show is not shown here.
#include "eval/device/evaluator.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "eval/launcher/child.hpp"
#include "oracle/oracle_fixture.hpp"
#include "os/file_system.hpp"
#include "target/device_package.hpp"

namespace ke {
namespace {

// A target whose kernels are for the played driver, or Python modules.
class PlayedTarget final : public Target {
 public:
  explicit PlayedTarget(ArtifactKind kind) : kind_(kind) {}
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
    const bool module = kind_ == ArtifactKind::python_module;
    BuildRecipe recipe;
    recipe.command = {"{self}", module ? "copy" : "build", "{source}", "{output}"};
    recipe.source_name = module ? "kernel.py" : "kernel.cpp";
    recipe.output_name = "kernel.out";
    recipe.artifact = kind_;
    return recipe;
  }
  Result<std::string> toolchain() const override { return std::string("played"); }

 private:
  ArtifactKind kind_;
};

// Its compiler.
int build_package(const std::string& source, const std::string& output) {
  const std::string library = output + ".so";
  const std::string command = "g++ -O1 -shared -fPIC -o '" + library + "' '" + source + "'";
  if (std::system(command.c_str()) != 0) return 1;
  target::DevicePackage package;
  package.architecture = "played";
  package.launch_lines = target::launch_lines_of(*os::read_file(source, 1 << 20));
  package.code = *os::read_file(library, 1 << 24);
  return os::write_file_atomically(output, target::encode_package(package)) ? 0 : 1;
}

int copy_module(const std::string& source, const std::string& output) {
  return os::write_file_atomically(output, *os::read_file(source, 1 << 20)) ? 0 : 1;
}

// y = 3 x + w, with a buffer that forward() changes.
constexpr std::string_view kProblem = R"(
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(500))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return 3 * x + self.w

def get_inputs():
    return [torch.randn(40, 500)]

def get_init_inputs():
    return []
)";

// The line that launches it and what a body sees. Scratch memory is all that outlasts a launch.
std::string kernel(const std::string& body) {
  return "// ke:scratch 1048576\n"
         "// ke:launch run grid=(ceil_div(n, 256)) block=(256) "
         "args=(in0, in1, out0, scratch+0, n)\n" +
         *os::read_file(KE_SOURCE_DIR "/tests/device/fake_kernel.h", 1 << 16) +
         "\nKE_FAKE(run, 8, 8, 8, 8, 8) {\n"
         "  (void)grid, (void)block, (void)shared;\n"
         "  auto* x = argument<float*>(arguments, 0);\n"
         "  auto* w = argument<float*>(arguments, 1);\n"
         "  auto* y = argument<float*>(arguments, 2);\n"
         "  auto* scratch = argument<float*>(arguments, 3);\n"
         "  const auto n = argument<int64_t>(arguments, 4);\n"
         "  (void)x, (void)w, (void)y, (void)scratch, (void)n;\n  " +
         body + "\n}\n";
}
constexpr const char* kRight = "for (int64_t i = 0; i < n; ++i) y[i] = 3 * x[i] + w[i % 500];";

class DeviceJudging : public OracleTest {
 protected:
  static void SetUpTestSuite() {
    OracleTest::SetUpTestSuite();
    folder_ = new os::TemporaryDirectory(*os::TemporaryDirectory::create("ke-device"));
    const std::string path = (folder_->path() / "problem.py").string();
    ASSERT_TRUE(os::write_file_atomically(path, kProblem));
    OracleOptions options = options_for("");
    options.problem_path = path;
    options.problem_name = "problem";
    options.device = "cpu";
    options.driver = KE_FAKE_CUDA;
    auto oracle = start_oracle(options);
    ASSERT_TRUE(oracle) << oracle.error().to_string();
    oracle_ = oracle->release();
    ASSERT_NE(oracle_->device_slots(), nullptr);
  }
  static void TearDownTestSuite() {
    delete oracle_;
    delete folder_;
    OracleTest::TearDownTestSuite();
  }

  void SetUp() override {
    ASSERT_NE(oracle_, nullptr);
    evaluator_ = make(package_target_);
  }

  std::unique_ptr<Evaluator> make(const Target& target) {
    DeviceEvaluatorOptions options;
    options.judge.oracle = oracle_;
    options.judge.target = &target;
    options.judge.clock = &clock_;
    options.judge.artifacts = folder_->path() / "artifacts";
    options.judge.runner_command = {"unused"};
    options.judge.machine.llc_bytes = 1 << 18;
    options.judge.limits.call_max = Milliseconds(1500);
    options.judge.limits.first_call_max = Milliseconds(3000);
    options.judge.seed = 7;
    options.launcher_command = {*os::own_executable(), "launch", KE_FAKE_CUDA};
    options.driver = KE_FAKE_CUDA;
    options.memory_bytes = int64_t{1} << 30;
    options.python = python_with_torch();
    options.cache_dir = cache_->path();
    options.zygote = zygote_;
    return std::move(*make_device_evaluator(options));
  }

  Evaluation judge(const std::string& source, JudgeOptions options = {}) {
    const Result<Artifact> artifact = evaluator_->build(source);
    EXPECT_TRUE(artifact) << artifact.error().to_string();
    if (!artifact) return {};
    Result<Evaluation> evaluation = evaluator_->judge(*artifact, options);
    EXPECT_TRUE(evaluation) << evaluation.error().to_string();
    return evaluation.value_or(Evaluation{});
  }
  static JudgeOptions unmeasured() { return {.effort = Effort::full, .measure = false}; }

  static inline os::TemporaryDirectory* folder_ = nullptr;
  static inline Oracle* oracle_ = nullptr;
  os::SystemClock clock_;
  PlayedTarget package_target_{ArtifactKind::device_package};
  PlayedTarget module_target_{ArtifactKind::python_module};
  std::unique_ptr<Evaluator> evaluator_;
};

TEST_F(DeviceJudging, AcceptsAndMeasures) {
  const Evaluation evaluation = judge(kernel(kRight), {.effort = Effort::screen});
  ASSERT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail << evaluation.diagnostics;
  ASSERT_TRUE(evaluation.measurement);
  EXPECT_GT(evaluation.measurement->time_ns, 0);
  EXPECT_TRUE(evaluation.measurement->eager_median_ns);
  EXPECT_TRUE(evaluation.measurement->cold);
  ASSERT_EQ(evaluation.errors.size(), 1u);
  EXPECT_LE(evaluation.errors[0].rms, evaluation.errors[0].rms_budget);
  EXPECT_FALSE(evaluation.confirmed);
}

TEST_F(DeviceJudging, ConfirmsWithOtherInputsAndBothBaselines) {
  ASSERT_EQ(judge(kernel(kRight)).verdict, Verdict::accepted);
  const Evaluation evaluation = judge(kernel(kRight), {.effort = Effort::confirm});
  ASSERT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
  EXPECT_TRUE(evaluation.confirmed);
  ASSERT_TRUE(evaluation.measurement);
  EXPECT_TRUE(evaluation.measurement->compile_median_ns);
}

TEST_F(DeviceJudging, RejectsWrongValues) {
  const Evaluation evaluation = judge(
      kernel("for (int64_t i = 0; i < n; ++i) y[i] = 3.001f * x[i] + w[i % 500];"), unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_output);
  EXPECT_FALSE(evaluation.measurement);
}

TEST_F(DeviceJudging, SaysWhatWasNeverWritten) {
  const Evaluation evaluation = judge(
      kernel("for (int64_t i = 1; i < n; ++i) y[i] = 3 * x[i] + w[i % 500];"), unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_output);
  EXPECT_NE(evaluation.detail.find("; 1 elements were never written"), std::string::npos)
      << evaluation.detail;
}

TEST_F(DeviceJudging, TellsAWriteToAnInputFromAnOverrun) {
  EXPECT_EQ(judge(kernel(std::string(kRight) + " x[0] = 1;"), unmeasured()).verdict,
            Verdict::input_mutated);
  EXPECT_EQ(judge(kernel(std::string(kRight) + " y[n + (1 << 20)] = 1;"), unmeasured()).verdict,
            Verdict::out_of_bounds);
  EXPECT_EQ(judge(kernel(kRight), unmeasured()).verdict, Verdict::accepted)
      << "a failure left something behind";
}

TEST_F(DeviceJudging, SeesAWriteBesideAnOutput) {
  const Evaluation evaluation =
      judge(kernel(std::string(kRight) + " y[-1] = 1;"), unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::out_of_bounds) << evaluation.detail;
}

TEST_F(DeviceJudging, EndsAHang) {
  EXPECT_EQ(judge(kernel("for (;;) asm volatile(\"\");"), unmeasured()).verdict,
            Verdict::timed_out);
}

TEST_F(DeviceJudging, RejectsOtherBitsInEveryCall) {
  const Evaluation evaluation = judge(
      kernel(std::string(kRight) + " y[7] += 1e-6f * scratch[0]; scratch[0] = 1;"), unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::nondeterministic);
}

// Keeps what it computed for an address, and gives it again.
TEST_F(DeviceJudging, SeesAResultThatWasKept) {
  const std::string kept =
      "auto** known = reinterpret_cast<float**>(scratch);\n"
      "  const int mine = known[0] == x || known[0] == nullptr ? 0 : 1;\n"
      "  float* results = scratch + 1024 + mine * n;\n"
      "  if (known[mine] != x) {\n"
      "    known[mine] = x;\n"
      "    for (int64_t i = 0; i < n; ++i) results[i] = 3 * x[i] + w[i % 500];\n"
      "  }\n"
      "  for (int64_t i = 0; i < n; ++i) y[i] = results[i];";
  EXPECT_EQ(judge(kernel(kept), unmeasured()).verdict, Verdict::wrong_output);
}

// Right while it is checked; later it does nothing.
TEST_F(DeviceJudging, LooksAtCallsThatAreTimed) {
  const Evaluation evaluation =
      judge(kernel(std::string("if (++scratch[0] > 9) return;\n  ") + kRight));
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_output);
  EXPECT_NE(evaluation.detail.find("in a call that was timed"), std::string::npos)
      << evaluation.detail;
}

TEST_F(DeviceJudging, RefusesLinesThatDoNotFit) {
  std::string source = kernel(kRight);
  source.replace(source.find("in1"), 3, "in9");
  const Evaluation evaluation = judge(source, unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::compile_error);
  EXPECT_NE(evaluation.detail.find("in9"), std::string::npos) << evaluation.detail;
}

TEST_F(DeviceJudging, SaysWhatTheCompilerSaid) {
  const Evaluation evaluation = judge(kernel("this is no C++"), unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::compile_error);
}

// --- Python modules ------------------------------------------------------------------------------

// A module whose forward() has this body.
std::string module_with(const std::string& body) {
  return "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n"
         "        super().__init__()\n        self.w = torch.nn.Parameter(torch.empty(500))\n"
         "        self.register_buffer(\"calls\", torch.zeros(()))\n\n    def forward(self, x):\n" +
         body;
}

class ModuleJudging : public DeviceJudging {
 protected:
  void SetUp() override {
    ASSERT_NE(oracle_, nullptr);
    evaluator_ = make(module_target_);
  }
};

TEST_F(ModuleJudging, AcceptsAndMeasuresByItsOwnClock) {
  const Evaluation evaluation = judge(module_with("        return 3 * x + self.w\n"));
  ASSERT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail << evaluation.diagnostics;
  ASSERT_TRUE(evaluation.measurement);
  EXPECT_GT(evaluation.measurement->time_ns, 0);
  EXPECT_EQ(evaluation.kernel_class, "library");
  EXPECT_NE(evaluation.protections.find("net"), std::string::npos) << evaluation.protections;
  EXPECT_EQ(zygote_->why_not(), "") << "its process was not forked";
}

TEST_F(ModuleJudging, RejectsByWhatIsWrong) {
  EXPECT_EQ(judge(module_with("        return 3.001 * x + self.w\n"), unmeasured()).verdict,
            Verdict::wrong_output);
  const Evaluation shaped =
      judge(module_with("        return (3 * x + self.w)[:1]\n"), unmeasured());
  EXPECT_EQ(shaped.verdict, Verdict::wrong_output);
  EXPECT_NE(shaped.detail.find("shape"), std::string::npos) << shaped.detail;
  const Evaluation raised = judge(module_with("        raise ValueError('no')\n"), unmeasured());
  EXPECT_EQ(raised.verdict, Verdict::crashed);
  EXPECT_NE(raised.detail.find("ValueError"), std::string::npos) << raised.detail;
  EXPECT_EQ(judge(module_with("        import os; os._exit(0)\n"), unmeasured()).verdict,
            Verdict::crashed);
  EXPECT_EQ(judge(module_with("        while True: pass\n"), unmeasured()).verdict,
            Verdict::timed_out);
  EXPECT_EQ(judge("class ModelNew:\n  this is no Python\n", unmeasured()).verdict,
            Verdict::compile_error);
}

// The state that forward() writes is its own, and put back.
TEST_F(ModuleJudging, LetsAModuleWriteWhatTheProblemWrites) {
  const Evaluation evaluation = judge(
      module_with("        self.calls += 1\n        return 3 * x + self.w\n"),
      unmeasured());
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.detail;
}

// What the runner does then only a device shows; that it is told to, a module can see here.
TEST_F(ModuleJudging, StainsWhatIsFreeBeforeEachCheckedCall) {
  const std::string counting =
      "import gc\n\nseen = []\n\n\nfor thing in gc.get_objects():\n"
      "    if type(thing).__name__ == 'Runner':\n        thing._stain = seen.append\n\n\n";
  const Evaluation stained = judge(
      counting + module_with("        told, seen[:] = len(seen), []\n"
                             "        return 3 * x + self.w if told == 1 else x\n"),
      unmeasured());
  EXPECT_EQ(stained.verdict, Verdict::accepted) << stained.detail;
  const Evaluation again = judge(
      counting + module_with("        told, seen[:] = len(seen), []\n"
                             "        return 3 * x + self.w if told == 0 else x\n"),
      unmeasured());
  EXPECT_EQ(again.verdict, Verdict::wrong_output) << again.detail;
}

TEST_F(ModuleJudging, LooksAtCallsThatAreTimed) {
  const Evaluation evaluation = judge(
      module_with("        self.seen = getattr(self, 'seen', 0) + 1\n"
                  "        return 3 * x + (self.w if self.seen < 6 else 0)\n"));
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_output);
  EXPECT_NE(evaluation.detail.find("in a call that was timed"), std::string::npos)
      << evaluation.detail;
}

// Results are kept by what the inputs hold: right every time, and no time at all.
TEST_F(ModuleJudging, SeesResultsThatAreKeptByContents) {
  const std::string slow = "for _ in range(400): y = 3 * x + self.w\n";
  const Evaluation kept = judge(
      "known = {}\n\n\n" +
      module_with("        key = tuple(x[0, :8].tolist())\n        if key not in known:\n"
                  "            " + slow + "            known[key] = y\n"
                  "        return known[key]\n"),
      {.effort = Effort::full});
  EXPECT_EQ(kept.verdict, Verdict::implausible_time) << kept.detail;
  EXPECT_NE(kept.detail.find("keeps its results"), std::string::npos) << kept.detail;
  const Evaluation honest = judge(module_with("        " + slow + "        return y\n"),
                                  {.effort = Effort::full});
  EXPECT_EQ(honest.verdict, Verdict::accepted) << honest.detail;
}

// Which calls are to come stands in the runner's frame; results that are overwritten need no work.
TEST_F(ModuleJudging, SeesCallsThatAreLeftOut) {
  const std::string slow = "for _ in range(5): y = 3 * x + self.w\n";
  const Evaluation skipping = judge(
      "import sys\nimport torch\n\nseen = {'batch': None, 'nothing': torch.zeros(40, 500)}\n\n\n" +
      module_with("        frame = sys._getframe()\n"
                  "        while frame.f_code.co_name != '_run': frame = frame.f_back\n"
                  "        numbers = frame.f_locals['numbers']\n"
                  "        if seen['batch'] is not numbers: seen.update(batch=numbers, at=0)\n"
                  "        at = seen['at']\n"
                  "        seen['at'] += 1\n"
                  "        if numbers[at] in numbers[at + 1:]: return seen['nothing']\n"
                  "        " + slow + "        return y\n"),
      {.effort = Effort::full});
  EXPECT_EQ(skipping.verdict, Verdict::implausible_time) << skipping.detail;
  EXPECT_NE(skipping.detail.find("leaves calls out"), std::string::npos) << skipping.detail;
  const Evaluation honest = judge(module_with("        " + slow + "        return y\n"),
                                  {.effort = Effort::full});
  EXPECT_EQ(honest.verdict, Verdict::accepted) << honest.detail;
}

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "launch") == 0) return ke::launcher::child_main(argv[2]);
  if (argc == 4 && std::strcmp(argv[1], "build") == 0) return ke::build_package(argv[2], argv[3]);
  if (argc == 4 && std::strcmp(argv[1], "copy") == 0) return ke::copy_module(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
