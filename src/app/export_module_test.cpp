// SPDX-License-Identifier: Apache-2.0
//
// Exports kernels written by hand and uses them from PyTorch and from C++. Needs torch: skips (77)
// without it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "app/export.hpp"
#include "base/json.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"

namespace ke::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProblem = R"(import torch

class Model(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.scale = torch.nn.Linear(4, 1, bias=False)
        self.slope = slope

    def forward(self, x, shift):
        y = torch.where(x > 0, x, x * self.slope) * self.scale.weight[0, 1] + shift
        return y, (y > 0).sum()

def get_inputs():
    return [torch.randn(33, 70), 0.5]

def get_init_inputs():
    return [0.25]
)";

constexpr const char* kKernel = R"(#include "kernelevolve/kernel.h"

constexpr int64_t N = 33 * 70;

struct Work {
  const float *x, *weight;
  float* y;
};

static void body(int64_t i, void* arg) {
  Work* w = static_cast<Work*>(arg);
  for (int64_t k = i * 70; k < (i + 1) * 70; ++k) {
    const float x = w->x[k];
    w->y[k] = (x > 0 ? x : x * 0.25f) * w->weight[1] + 0.5f;
  }
}

extern "C" int64_t ke_scratch_bytes(void) { return 128; }

extern "C" int ke_launch(const ke_tensor* in, int32_t n, ke_tensor* out, int32_t m,
                         ke_context* context) {
  if (n != 2 || m != 2 || context->scratch_bytes != 128 || context->scratch == nullptr) return 1;
  Work work{static_cast<const float*>(in[0].data), static_cast<const float*>(in[1].data),
            static_cast<float*>(out[0].data)};
  context->parallel_for(context->pool, 33, body, &work);
  int64_t count = 0;
  for (int64_t k = 0; k < N; ++k) count += work.y[k] > 0;
  *static_cast<int64_t*>(out[1].data) = count;
  return 0;
}
)";

std::string python() {
  const char* named = std::getenv("KE_PYTHON");
  return named != nullptr ? named : std::string(KE_SOURCE_DIR) + "/.venv/bin/python";
}

os::RunResult run_in(const fs::path& folder, std::vector<std::string> argv) {
  os::RunOptions options;
  options.process.argv = std::move(argv);
  options.process.environment = os::minimal_environment();
  options.process.working_directory = folder.string();
  options.time_max = std::chrono::seconds(120);
  return os::run(options).value();
}

class ExportModule : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new os::TemporaryDirectory(os::TemporaryDirectory::create().value());
    const fs::path problem_path = folder_->path() / "problem.py";
    ASSERT_TRUE(os::write_file_atomically(problem_path, kProblem));
    problem_ = new Problem;
    problem_->name = "leaky";
    problem_->path = problem_path.string();
    problem_->inputs = {
        {"x", ir::DType::float32, {33, 70}, {70, 1}, ir::InputKind::argument},
        {"scale.weight", ir::DType::float32, {1, 4}, {4, 1}, ir::InputKind::parameter}};
    problem_->outputs = {{"output0", ir::DType::float32, {33, 70}, {70, 1}},
                         {"output1", ir::DType::int64, {}, {}}};
    const Result<ExportReport> report = export_module(request());
    ASSERT_TRUE(report) << report.error().to_string();
    checked_ = new std::string(report->checked);
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete problem_;
    delete checked_;
  }

  static ExportRequest request() {
    ExportRequest request{
        .problem = *problem_, .problem_source = kProblem, .kernel_source = kKernel};
    request.recipe = {{"g++", "-std=c++20", "-O2", "-march=native", "-shared", "-fPIC",
                       "-I{include}", "{source}", "-o", "{output}"},
                      "kernel.cpp",
                      "kernel.so"};
    request.target = "x86";
    request.toolchain = "g++";
    request.evaluation.verdict = Verdict::accepted;
    request.python = python();
    request.out = folder_->path() / "out";
    return request;
  }

  static void use(const std::string& script, const std::string& expected) {
    const os::RunResult result =
        run_in(folder_->path() / "out", {python(), "-W", "always", "-c", script});
    EXPECT_EQ(result.output, expected) << result.error;
    EXPECT_TRUE(result.status.success()) << result.error;
  }

  static os::TemporaryDirectory* folder_;
  static Problem* problem_;
  static std::string* checked_;
};
os::TemporaryDirectory* ExportModule::folder_ = nullptr;
Problem* ExportModule::problem_ = nullptr;
std::string* ExportModule::checked_ = nullptr;

TEST_F(ExportModule, IsTriedAgainstTheOriginal) {
  EXPECT_TRUE(checked_->starts_with("same results")) << *checked_;
  const Json manifest =
      parse_json(os::read_file(folder_->path() / "out/manifest.json", 1 << 20).value()).value();
  EXPECT_EQ(manifest["call"]["result"].dump(), R"(["tuple",[["tensor",0],["tensor",1]]])");
  EXPECT_EQ(manifest["call"]["changes_state"], false);
}

// Prelude: `used` tells whether the kernel ran (it counts calls into the library).
constexpr const char* kPrelude = R"(import torch, warnings, problem_leaky as p
calls = 0
inner = p._run_library
def counting(*a):
    global calls
    calls += 1
    return inner(*a)
p._run_library = counting
torch.manual_seed(1)
new, old = p.ModelNew(0.25), p.Model(0.25)
new.load_state_dict(old.state_dict())
x = torch.randn(33, 70)
def try_it(f, *a, **k):
    global calls
    calls = 0
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        r = f(*a, **k)
    e = old(*a, **k)
    same = torch.allclose(r[0], e[0], atol=1e-6) and torch.equal(r[1], e[1])
    print(calls, same, type(r).__name__, len(said))
)";

TEST_F(ExportModule, RunsTheKernelWhereItWasProved) {
  use(std::string(kPrelude) + R"(
try_it(new, x, 0.5)
try_it(new, x=x, shift=0.5)
try_it(new.eval(), x, 0.5)
with torch.no_grad(): old.scale.weight.fill_(3.0); new.scale.weight.fill_(3.0)
try_it(new, x, 0.5)
unaligned = torch.randn(33 * 70 + 1)[1:].view(33, 70)
try_it(new, unaligned, 0.5)
)",
      "1 True tuple 0\n1 True tuple 0\n1 True tuple 0\n1 True tuple 0\n1 True tuple 0\n");
}

TEST_F(ExportModule, FallsBackToTheOriginalAndWarnsOnce) {
  use(std::string(kPrelude) + R"(
try_it(new, torch.randn(33, 71), 0.5)
try_it(new, torch.randn(33, 71), 0.5)
def fresh(slope=0.25):
    m = p.ModelNew(slope)
    m.load_state_dict(old.state_dict())
    return m
try_it(fresh(), x, 0.75)
try_it(fresh(), x.double(), 0.5)
try_it(fresh(), torch.randn(70, 33).t(), 0.5)
old.slope = 0.1
try_it(fresh(0.1), x, 0.5)
old.slope = 0.25
m = fresh()
r = m(x, 0.5)
print(calls, r[0].requires_grad, m._ke_warned)
m = fresh()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16): m(x, 0.5)
print(calls, m._ke_warned)
)",
      "0 True tuple 1\n0 True tuple 0\n0 True tuple 1\n0 True tuple 1\n0 True tuple 1\n"
      "0 True tuple 1\n0 True True\n0 True\n");
}

TEST_F(ExportModule, FallsBackOnAnotherProcessor) {
  const fs::path copy = folder_->path() / "elsewhere";
  fs::copy(folder_->path() / "out", copy, fs::copy_options::recursive);
  Json manifest = parse_json(os::read_file(copy / "manifest.json", 1 << 20).value()).value();
  manifest["processor"]["model"] = "Imaginary 9000";
  ASSERT_TRUE(os::write_file_atomically(copy / "manifest.json", manifest.dump()));
  const os::RunResult result = run_in(copy, {python(), "check.py"});
  EXPECT_TRUE(result.status.success()) << result.error;
  EXPECT_EQ(result.output, "the original runs instead of the kernel\n");
  EXPECT_NE(result.error.find("Imaginary 9000"), std::string::npos) << result.error;
}

TEST_F(ExportModule, WorksUnderTorchCompileAndExport) {
  use(std::string(kPrelude) + R"(
p._run_library = inner
with torch.no_grad():
    exported = torch.export.export(new, (x, 0.5))
    ops = [str(n.target) for n in exported.graph.nodes if n.op == "call_function"]
    print(any("kernelevolve" in op for op in ops))
    compiled = torch.compile(new, backend="aot_eager", fullgraph=True)
    e = old(x, 0.5)
    r = compiled(x, 0.5)
    print(torch.allclose(r[0], e[0], atol=1e-6), torch.equal(r[1], e[1]), new._ke_warned)
)",
      "True\nTrue True False\n");
}

TEST_F(ExportModule, ServesManyThreadsAndForkedChildren) {
  use(std::string(kPrelude) + R"(
import os, threading
p._run_library = inner
xs = [torch.randn(33, 70) for _ in range(4)]
bad = []
def work(i):
    with torch.no_grad():
        for _ in range(50):
            if not torch.allclose(new(xs[i], 0.5)[0], old(xs[i], 0.5)[0], atol=1e-6): bad.append(i)
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(bad)
pid = os.fork()
if pid == 0:
    with torch.no_grad(): os._exit(0 if new(x, 0.5)[0].isfinite().all() else 1)
print(os.waitpid(pid, 0)[1])
)",
      "[]\n0\n");
}

TEST_F(ExportModule, ServesCppCallers) {
  const fs::path out = folder_->path() / "out";
  ASSERT_TRUE(os::write_file_atomically(out / "caller.cpp", R"(#include <cstdio>
#include "kernel.hpp"
alignas(64) float x[33 * 70], weight[4] = {0, 2, 0, 0}, y[33 * 70];
alignas(64) int64_t count;
int main() {
  for (float& v : x) v = -1;
  x[7] = 3;
  const int code = kernelevolve::problem_leaky(x, weight, y, &count, 2);
  std::printf("%d %.2f %.2f %ld\n", code, y[7], y[8], static_cast<long>(count));
}
)"));
  const os::RunResult built =
      run_in(out, {"g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-I.", "caller.cpp",
                   "kernel.so", "-Wl,-rpath,$ORIGIN", "-o", "caller"});
  ASSERT_TRUE(built.status.success()) << built.error;
  EXPECT_EQ(run_in(out, {(out / "caller").string()}).output, "0 6.50 0.00 1\n");
}

TEST_F(ExportModule, RefusesAKernelThatDisagrees) {
  ExportRequest wrong = request();
  const size_t at = wrong.kernel_source.find("0.25f");
  wrong.kernel_source.replace(at, 5, "0.75f");
  wrong.out = folder_->path() / "wrong";
  const Result<ExportReport> report = export_module(wrong);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Errc::invalid);
  EXPECT_NE(report.error().message.find("DIFFERENT"), std::string::npos) << report.error().message;
}

TEST_F(ExportModule, RefusesAKernelThatWasNotAccepted) {
  ExportRequest rejected = request();
  rejected.evaluation.verdict = Verdict::wrong_output;
  EXPECT_EQ(export_module(rejected).error().code, Errc::invalid);
}

Measurement measured(double speedup) {
  Measurement measurement;
  measurement.time_ns = 10'000;
  measurement.speedup = speedup;
  return measurement;
}

TEST_F(ExportModule, RefusesAKernelThatWasConfirmedToBeSlower) {
  ExportRequest slow = request();
  slow.out = folder_->path() / "slow";
  slow.evaluation.confirmed = true;
  slow.evaluation.measurement = measured(0.83);
  const Result<ExportReport> refused = export_module(slow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid);
  EXPECT_NE(refused.error().message.find("0.83 times as fast"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(os::exists(slow.out)) << "something was written";
  for (const char* flag : {"tie", "too_small"}) {
    slow.evaluation.flags = {flag};
    const Result<ExportReport> report = export_module(slow);
    EXPECT_TRUE(report) << flag << ": " << report.error().to_string();
  }
}

// --- Kernels of a device -------------------------------------------------------------------------

constexpr const char* kModuleKernel = R"(import torch

calls = 0


class ModelNew(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.scale = torch.nn.Linear(4, 1, bias=False)
        self.slope = slope

    def forward(self, x, shift):
        global calls
        calls += 1
        assert not torch.is_grad_enabled() and self.slope == 0.25
        y = torch.nn.functional.leaky_relu(x, self.slope) * self.scale.weight[0, 1] + shift
        return y, (y > 0).sum()
)";

class ExportOfADevice : public ExportModule {
 protected:
  // On the processor the runtime of a module works as on a device.
  static ExportRequest module_request(const std::string& device_type, const std::string& out) {
    ExportRequest asked = request();
    asked.kernel_source = kModuleKernel;
    asked.recipe = {{"parse"}, "kernel.py", "module.py"};
    asked.target = "triton";
    asked.device = DeviceCode{.type = device_type,
                              .device = "Imaginary 9000",
                              .major = 9,
                              .minor = 0,
                              .driver = {},
                              .code = {}};
    asked.out = folder_->path() / out;
    return asked;
  }
  static void use_in(const std::string& out, const std::string& script,
                     const std::string& expected) {
    const os::RunResult result =
        run_in(folder_->path() / out, {python(), "-W", "always", "-c", script});
    EXPECT_EQ(result.output, expected) << result.error;
    EXPECT_TRUE(result.status.success()) << result.error;
  }
};

constexpr const char* kModulePrelude = R"(import sys, torch, warnings, problem_leaky as p
kernel = p._run_library.module if p._run_library else None
torch.manual_seed(1)
new, old = p.ModelNew(0.25), p.Model(0.25)
new.load_state_dict(old.state_dict())
x = torch.randn(33, 70)
def try_it(f, *a, **k):
    before = kernel.calls if kernel else 0
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        r = f(*a, **k)
    e = old(*a, **k)
    same = torch.allclose(r[0], e[0], atol=1e-6) and torch.equal(r[1], e[1])
    print((kernel.calls if kernel else 0) - before, same, type(r).__name__, len(said))
)";

TEST_F(ExportOfADevice, CallsAModuleWithTheCallersState) {
  const Result<ExportReport> report = export_module(module_request("cpu", "device_module"));
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_TRUE(report->checked.starts_with("same results")) << report->checked;
  use_in("device_module", std::string(kModulePrelude) + R"(
try_it(new, x, 0.5)
try_it(new, shift=0.5, x=x)
with torch.no_grad(): old.scale.weight.fill_(3.0); new.scale.weight.fill_(3.0)
try_it(new, x, 0.5)
old.scale.weight = torch.nn.Parameter(torch.full((1, 4), 5.0))
new.scale.weight = torch.nn.Parameter(torch.full((1, 4), 5.0))
try_it(new, x, 0.5)
try_it(new, torch.randn(33, 71), 0.5)
compiled = torch.compile(new, backend="aot_eager", fullgraph=True)
try_it(compiled, x, 0.5)
)",
         "1 True tuple 0\n1 True tuple 0\n1 True tuple 0\n1 True tuple 0\n0 True tuple 1\n"
         "1 True tuple 0\n");
}

TEST_F(ExportOfADevice, FallsBackWhereThereIsNone) {
  const Result<ExportReport> report = export_module(module_request("cuda", "no_device"));
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_TRUE(report->checked.starts_with("the original runs instead of the kernel: it was proved "
                                          "on 'Imaginary 9000'"))
      << report->checked;
  for (const char* file : {"runtime.py", "kernel.py", "original.py", "README.md"}) {
    EXPECT_TRUE(os::exists(folder_->path() / "no_device" / file)) << file;
  }
  EXPECT_FALSE(os::exists(folder_->path() / "no_device/kernel.so"));
  use_in("no_device", std::string(kModulePrelude) + "try_it(new, x, 0.5)\ntry_it(new, x, 0.5)\n",
         "0 True tuple 1\n0 True tuple 0\n");
}

TEST_F(ExportOfADevice, WritesDownWhatIsLaunched) {
  ExportRequest asked = module_request("cuda", "device_code");
  asked.recipe.source_name = "kernel.cu";
  asked.device->code = "machine code";
  target::Launch launch;
  launch.kernel = "run";
  launch.grid = {7, 2, 1};
  launch.shared_bytes = 1024;
  launch.arguments = {{target::LaunchArgument::Kind::input, 1},
                      {target::LaunchArgument::Kind::scratch, 256},
                      {target::LaunchArgument::Kind::integer, 99}};
  asked.device->plans = {{.scratch_bytes = 512, .launches = {launch}}};
  const Result<ExportReport> report = export_module(asked);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(os::read_file(asked.out / "kernel.cubin", 99).value(), "machine code");
  const Json manifest =
      parse_json(os::read_file(asked.out / "manifest.json", 1 << 20).value()).value();
  EXPECT_EQ(manifest["device"].dump(),
            R"({"capability":[9,0],"name":"Imaginary 9000","type":"cuda"})");
  EXPECT_EQ(manifest["plans"].dump(),
            R"([{"launches":[{"arguments":[["input",1],["scratch",256],["integer",99]],)"
            R"("block":[1,1,1],"grid":[7,2,1],"kernel":"run","shared":1024}],)"
            R"("scratch_bytes":512}])");
}

TEST_F(ExportOfADevice, HasNoHeader) {
  ExportRequest asked = module_request("cuda", "header");
  asked.form = ExportForm::header;
  EXPECT_EQ(export_module(asked).error().code, Errc::unavailable);
}

}  // namespace
}  // namespace ke::app

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!ke::os::exists(ke::app::python()) ||
      !ke::app::run_in("/", {ke::app::python(), "-c", "import torch"}).status.success()) {
    std::fprintf(stderr, "no Python with torch at %s: skipped\n", ke::app::python().c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
