// SPDX-License-Identifier: Apache-2.0
//
// Printed Triton functions in Triton's interpreter, where they must mean what the IR's says. Needs
// a Python that has PyTorch and Triton; all cases of a test share one process.
#include "target/conformance.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.hpp"
#include "base/rng.hpp"
#include "ir/random_program.hpp"
#include "target/scan_cases.hpp"
#include "target/triton/kernel.hpp"
#include "target/triton/launcher.hpp"
#include "target/triton/python.hpp"
#include "target/triton/scalar_ops.hpp"
#include "target/triton/toolchain.hpp"

namespace ke::triton {
namespace {

namespace fs = std::filesystem;
using ir::TensorBytes;
using target::ConformanceCase;

void write_bytes(const fs::path& path, const TensorBytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Json specs_of(const ir::Program& program) {
  Json inputs = Json::array();
  for (const ir::TensorId id : program.inputs) {
    const ir::Tensor& tensor = program.tensor(id);
    inputs.push_back(
        {{"dtype", enum_name(tensor.dtype)}, {"shape", tensor.shape}, {"strides", tensor.strides}});
  }
  return inputs;
}

// Triton's interpreter converts to bfloat16 in its own way: neither denormals nor integers.
bool needs_bfloat16(const ir::Program& program) {
  bool found = false;
  for (const ir::Stage& stage : program.stages) {
    ir::walk(stage.body,
             [&](const ir::Expr& expr) { found = found || expr.dtype == ir::DType::bfloat16; });
  }
  for (const ir::Tensor& tensor : program.tensors) {
    found = found || tensor.dtype == ir::DType::bfloat16;
  }
  return found;
}

// Where there is one, its kernels; nothing when one of them is not printable.
std::optional<std::vector<ir::FusedKernel>> printable(const ConformanceCase& one) {
  auto kernels = ir::realize(one.program, one.plan);
  EXPECT_TRUE(kernels) << one.name << ": " << kernels.error().to_string();
  if (!kernels) return std::nullopt;
  for (const ir::FusedKernel& kernel : *kernels) {
    if (!print_kernel(one.program, kernel, kernel.name)) return std::nullopt;
  }
  for (const ir::TensorId id : one.program.outputs) {
    if (one.program.tensor(id).role == ir::Role::constant) return std::nullopt;
  }
  return std::move(*kernels);
}

class Interpreted : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<PythonToolchain> python = find_python();
    if (!python || python->triton.empty() || python->torch.empty()) {
      GTEST_SKIP() << "no Python with PyTorch and Triton was found";
    }
    python_ = python->interpreter;
    std::string pattern = (fs::temp_directory_path() / "ke_triton_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Compares what can be printed. For a hundred of these so many may be refused.
  void expect_conformance(const std::vector<ConformanceCase>& cases, size_t refused_max) {
    std::string module =
        "import torch\nimport triton\nimport triton.language as tl\n"
        "from triton.language.extra import libdevice\n\n";
    module += kHelpers;
    Json list = Json::array();
    std::vector<const ConformanceCase*> printed;
    size_t refused = 0;
    for (const ConformanceCase& one : cases) {
      if (needs_bfloat16(one.program)) continue;
      const auto kernels = printable(one);
      if (!kernels) {
        ++refused;
        continue;
      }
      const size_t number = printed.size();
      std::vector<std::vector<int64_t>> shapes;
      for (const ir::TensorId id : one.program.outputs) {
        shapes.push_back(one.program.tensor(id).shape);
      }
      const std::string name = fmt::format("case{}", number);
      module += print_launcher(one.program, *kernels, shapes, name);
      list.push_back({{"function", name}, {"inputs", specs_of(one.program)}});
      for (size_t i = 0; i < one.inputs.size(); ++i) {
        write_bytes(folder_ / fmt::format("{}_{}.in", number, i), one.inputs[i]);
      }
      printed.push_back(&one);
    }
    EXPECT_LE(refused * 100, printed.size() * refused_max)
        << refused << " cannot be printed and " << printed.size() << " can";
    std::ofstream(folder_ / "module.py") << module;
    std::ofstream(folder_ / "cases.json") << dump_json(list);
    const std::string command =
        fmt::format("'{}' '{}/tests/triton/run_cases.py' '{}' > '{}/log' 2>&1", python_.string(),
                    KE_SOURCE_DIR, folder_.string(), folder_.string());
    ASSERT_EQ(std::system(command.c_str()), 0) << read_text(folder_ / "log");
    for (size_t number = 0; number < printed.size(); ++number) {
      SCOPED_TRACE(printed[number]->name);
      expect_case(number, *printed[number]);
    }
  }

  void expect_case(size_t number, const ConformanceCase& one) {
    const std::string failed = read_text(folder_ / fmt::format("{}.failed", number));
    ASSERT_EQ(failed, "") << ir::print(one.program);
    std::vector<TensorBytes> outputs;
    for (size_t o = 0; o < one.program.outputs.size(); ++o) {
      const std::string text = read_text(folder_ / fmt::format("{}_{}.out", number, o));
      const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
      outputs.emplace_back(bytes, bytes + text.size());
    }
    target::expect_result(one, outputs);
  }

  fs::path python_, folder_;
};

TEST_F(Interpreted, EveryOperationMeansWhatTheInterpreterSays) {
  expect_conformance(target::operation_cases(), 15);
}

TEST_F(Interpreted, RandomProgramsMeanWhatTheInterpreterSays) {
  const auto target = find_target("triton")->make();
  std::vector<ConformanceCase> cases;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    for (ConformanceCase& one : target::random_cases(*target, seed, 16, {})) {
      cases.push_back(std::move(one));
    }
  }
  // Products and positions of extremes are the library's.
  expect_conformance(cases, 70);
}

// Squares of a row with one outlier: in whichever block that is, the others must still count.
TEST_F(Interpreted, AddsUpWhatVanishesBesideALargeTerm) {
  const auto program = ir::parse_program(R"(tensor %0 x: float32[2, 16384] input
tensor %1 s: float32[2] output
inputs %0
stage %1[i=2] = sum[j=16384] in float32: load %0[i0, i1]  # sum
outputs %1
)");
  ASSERT_TRUE(program) << program.error().to_string();
  std::vector<ConformanceCase> cases;
  for (const int64_t block : {64, 256, 16384}) {
    ir::Plan plan = ir::fuse_greedily(*program);
    plan.kernels[0].schedule = {{"block", block}};
    Rng rng(1);
    cases.push_back({fmt::format("blocks of {}", block), *program, plan,
                     ir::random_inputs(*program, rng)});
    target::plant_large_terms(cases.back(), 16384);
  }
  expect_conformance(cases, 0);
}

TEST_F(Interpreted, ScansMeanWhatTheInterpreterSays) {
  const std::vector<ir::Schedule> schedules{{}, {{"block", 32}, {"rows", 2}}};
  std::vector<ConformanceCase> cases = target::scan_cases({129}, schedules);
  // Triton's interpreter adds one element after another, a device in a tree.
  for (ConformanceCase& one : cases) one.of_largest = 2e-5;
  expect_conformance(cases, 20);
}

}  // namespace
}  // namespace ke::triton
