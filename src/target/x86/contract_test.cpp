// SPDX-License-Identifier: Apache-2.0
//
// Printed contractions are compiled and compared with a loop in double precision, many cases in
// one compilation.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "base/rng.hpp"
#include "kernelevolve/kernel.h"
#include "target/x86/contract_example.hpp"
#include "target/x86/contract_schedule.hpp"
#include "target/x86/skeleton.hpp"

namespace ke::x86 {
namespace {

namespace fs = std::filesystem;
using ir::DType;

constexpr uint64_t kSeed = 20240607;
constexpr int64_t kCanaryBytes = 256;

std::string describe(const ProductExample& spec) {
  std::string text = fmt::format(
      "batch {} m {} k {} n {} transposed {} {} type {} epilogue {} prologue {}", spec.batch,
      spec.m, spec.k, spec.n, spec.left_transposed, spec.right_transposed, enum_name(spec.dtype),
      static_cast<int>(spec.epilogue), static_cast<int>(spec.prologue));
  for (const auto& [name, value] : spec.schedule) text += fmt::format(" {}={}", name, value);
  return text;
}

// A folder of its own, gone at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "ke-contract-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchFolder() { fs::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Result<std::string> printed(const ProductExample& spec, const MachineProfile& machine) {
  const ExampleKernel example = make_example(spec, "kernel0_product");
  PrintContext context{example.program, machine, example.kernel};
  PrintedKernel kernel{&example.kernel, TRY(contract_skeleton().print(context))};
  return assemble(example.program, {&kernel, 1});
}

// One source with every case in a namespace of its own; entry points get the case's number.
std::string joined(const std::vector<ProductExample>& cases, const MachineProfile& machine) {
  std::string text = "#include <stdint.h>\n#include \"kernelevolve/kernel.h\"\n";
  for (size_t i = 0; i < cases.size(); ++i) {
    const Result<std::string> source = printed(cases[i], machine);
    EXPECT_TRUE(source.has_value()) << describe(cases[i]);
    if (!source) continue;
    std::string own = replaced(*source, "int ke_launch(", fmt::format("int ke_launch_{}(", i));
    own = replaced(own, "ke_scratch_bytes(void)", fmt::format("ke_scratch_bytes_{}(void)", i));
    text += fmt::format("namespace case{} {{\n{}\n}}\n", i, own);
  }
  return text;
}

bool compiles(const fs::path& folder, const std::string& source, const std::string& march) {
  std::ofstream(folder / "kernels.cpp") << source;
  const std::string command = fmt::format(
      "g++ -std=c++20 -O1 -march={} -fwrapv -fno-math-errno -fno-trapping-math -Wno-psabi -shared "
      "-fPIC -I{}/include {}/kernels.cpp -o {}/kernels.so -lm",
      march, KE_SOURCE_DIR, folder.string(), folder.string());
  return std::system(command.c_str()) == 0;
}

void run_serially(void*, int64_t n, void (*body)(int64_t, void*), void* argument) {
  for (int64_t i = n; i-- > 0;) body(i, argument);  // any order must do
}

void run_on_two_threads(void*, int64_t n, void (*body)(int64_t, void*), void* argument) {
  const auto half = [&](int64_t first) {
    for (int64_t i = first; i < n; i += 2) body(i, argument);
  };
  std::thread other(half, 1);
  half(0);
  other.join();
}

// Elements of one tensor as the kernel sees them, between canaries, and their values.
struct Buffer {
  std::vector<std::byte> bytes;
  std::vector<int64_t> shape, strides;
  std::vector<double> values;
  DType dtype = DType::float32;
  size_t skip = 0;

  void* data() { return bytes.data() + skip; }
  double at(int64_t i) {
    return dtype == DType::float32 ? static_cast<double>(static_cast<float*>(data())[i])
                                   : static_cast<double*>(data())[i];
  }
  bool is_intact() const {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const size_t size = values.size() * static_cast<size_t>(bytes_of(dtype));
      if ((i < skip || i >= skip + size) && bytes[i] != std::byte{0xff}) return false;
    }
    return true;
  }
  ke_tensor tensor() {
    return {data(),
            shape.data(),
            strides.data(),
            static_cast<int32_t>(shape.size()),
            KE_DTYPE_FLOAT,
            static_cast<uint8_t>(8 * bytes_of(dtype)),
            1};
  }
};

Buffer make_buffer(const ir::Tensor& tensor, Rng* rng) {
  Buffer buffer{.shape = tensor.shape, .strides = tensor.strides, .dtype = tensor.dtype};
  const auto count = static_cast<size_t>(tensor.elements());
  buffer.bytes.assign(count * static_cast<size_t>(bytes_of(tensor.dtype)) + 2 * kCanaryBytes,
                      std::byte{0xff});
  const auto address = reinterpret_cast<uintptr_t>(buffer.bytes.data());
  buffer.skip = 64 + (64 - address % 64) % 64;
  buffer.values.resize(count);
  if (rng == nullptr) return buffer;
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(rng->normal());
    buffer.values[i] = static_cast<double>(value);
    if (tensor.dtype == DType::float32) static_cast<float*>(buffer.data())[i] = value;
    if (tensor.dtype == DType::float64) static_cast<double*>(buffer.data())[i] = buffer.values[i];
  }
  return buffer;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double mish(double x) { return x * std::tanh(std::log1p(std::exp(x))); }

double expected_epilogue(Epilogue epilogue, double sum, double bias) {
  const double x = sum + bias;
  switch (epilogue) {
    case Epilogue::none:
      return sum;
    case Epilogue::both_outputs:
    case Epilogue::bias_leaky:
      return 2 * x > 0 ? 2 * x : 0.2 * x;
    case Epilogue::swish:
      return x * sigmoid(x) * 2;
    case Epilogue::mish_twice:
      return mish(mish(x));
  }
  return sum;
}

double expected_sum(const ProductExample& spec, const std::vector<Buffer>& inputs, int64_t b,
                    int64_t m, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < spec.k; ++k) {
    const int64_t left = spec.left_transposed ? k * spec.m + m : m * spec.k + k;
    const int64_t right = spec.right_transposed ? n * spec.k + k : k * spec.n + n;
    sum += inputs[0].values[static_cast<size_t>(b * spec.m * spec.k + left)] *
           inputs[1].values[static_cast<size_t>(b * spec.k * spec.n + right)];
  }
  return spec.prologue == Prologue::none ? sum : sum / 2;
}

void expect_result(const ProductExample& spec, const std::vector<Buffer>& inputs,
                   std::vector<Buffer>& outputs) {
  const double unit = spec.dtype == DType::float32 ? 6e-8 : 1.2e-16;
  const double tolerance = 60 * unit * (1 + std::sqrt(static_cast<double>(spec.k)));
  for (int64_t b = 0; b < std::max<int64_t>(spec.batch, 1); ++b) {
    for (int64_t m = 0; m < spec.m; ++m) {
      for (int64_t n = 0; n < spec.n; ++n) {
        const double sum = expected_sum(spec, inputs, b, m, n);
        const double bias = inputs.size() > 2 ? inputs[2].values[static_cast<size_t>(n)] : 0;
        const double want = expected_epilogue(spec.epilogue, sum, bias);
        const int64_t at = (b * spec.m + m) * spec.n + n;
        const double got = outputs.back().at(at);
        const double scale = std::sqrt(static_cast<double>(spec.k)) + std::abs(want);
        if (!(std::abs(got - want) <= tolerance * scale)) {
          FAIL() << fmt::format("y[{}, {}, {}] is {}, not {}", b, m, n, got, want);
        }
        if (outputs.size() > 1 && !(std::abs(outputs[0].at(at) - sum) <= tolerance * scale)) {
          FAIL() << fmt::format("z[{}, {}, {}] is {}, not {}", b, m, n, outputs[0].at(at), sum);
        }
      }
    }
  }
}

void run_case(void* library, size_t index, const ProductExample& spec, bool threads) {
  const auto symbol = [&](const char* name) {
    return dlsym(library, fmt::format("{}_{}", name, index).c_str());
  };
  const auto launch = reinterpret_cast<decltype(&ke_launch)>(symbol("ke_launch"));
  ASSERT_NE(launch, nullptr);
  const auto scratch_bytes =
      reinterpret_cast<decltype(&ke_scratch_bytes)>(symbol("ke_scratch_bytes"));
  const ir::Program program = make_example(spec, "kernel0_product").program;
  Rng rng = Rng(kSeed).split(describe(spec));
  std::vector<Buffer> inputs, outputs;
  for (ir::TensorId id : program.inputs) inputs.push_back(make_buffer(program.tensor(id), &rng));
  for (ir::TensorId id : program.outputs)
    outputs.push_back(make_buffer(program.tensor(id), nullptr));
  std::vector<ke_tensor> in, out;
  for (Buffer& buffer : inputs) in.push_back(buffer.tensor());
  for (Buffer& buffer : outputs) out.push_back(buffer.tensor());
  ir::Tensor area{.name = "scratch", .shape = {scratch_bytes ? scratch_bytes() / 4 + 1 : 1}};
  Buffer scratch = make_buffer(area, nullptr);
  ke_context context{
      scratch.data(), area.shape[0] * 4, 2, nullptr, threads ? run_on_two_threads : run_serially,
      nullptr};
  ASSERT_EQ(launch(in.data(), static_cast<int32_t>(in.size()), out.data(),
                   static_cast<int32_t>(out.size()), &context),
            0);
  expect_result(spec, inputs, outputs);
  for (const Buffer& buffer : outputs) EXPECT_TRUE(buffer.is_intact()) << "wrote past an output";
  EXPECT_TRUE(scratch.is_intact()) << "wrote past its scratch";
}

void expect_all(const std::vector<ProductExample>& cases) {
  MachineProfile machine{.threads = 2};
  const ScratchFolder folder;
  ASSERT_TRUE(compiles(folder.path(), joined(cases, machine), "native"));
  void* library = dlopen((folder.path() / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(describe(cases[i]));
    run_case(library, i, cases[i], /*threads=*/false);
    run_case(library, i, cases[i], /*threads=*/true);
  }
  dlclose(library);
}

// A schedule with every choice drawn from its legal values.
ir::Schedule random_schedule(const ProductExample& spec, Rng& rng) {
  const ExampleKernel example = make_example(spec, "kernel0_product");
  ir::Schedule schedule;
  for (const ScheduleChoice& choice :
       contract_skeleton().choices(example.program, example.kernel, {.threads = 2})) {
    schedule[choice.name] = rng.pick(choice.values);
  }
  return schedule;
}

TEST(Contract, MultipliesOddShapesInEveryStorageOrder) {
  std::vector<ProductExample> cases;
  constexpr int64_t shapes[][3] = {{1, 1, 1},    {1, 7, 33},  {13, 1, 5},   {6, 16, 16},
                                   {17, 19, 23}, {64, 40, 1}, {50, 130, 47}};
  int order = 0;
  for (const auto& [m, k, n] : shapes) {
    for (int i = 0; i < 2; ++i, ++order) {
      cases.push_back({.m = m,
                       .k = k,
                       .n = n,
                       .left_transposed = (order & 1) != 0,
                       .right_transposed = (order & 2) != 0});
    }
  }
  expect_all(cases);
}

TEST(Contract, MultipliesEmptyExtents) {
  expect_all({{.m = 0, .k = 4, .n = 4},
              {.m = 4, .k = 4, .n = 0, .epilogue = Epilogue::bias_leaky},
              {.m = 5, .k = 0, .n = 9},
              {.m = 9, .k = 0, .n = 16, .epilogue = Epilogue::bias_leaky},
              {.m = 5, .k = 0, .n = 9, .schedule = {{"pack_b", 1}}},
              {.batch = 2, .m = 5, .k = 0, .n = 16, .schedule = {{"pack_b", 2}}}});
}

TEST(Contract, MultipliesBatches) {
  expect_all({{.batch = 3, .m = 7, .k = 9, .n = 20},
              {.batch = 2, .m = 33, .k = 20, .n = 17, .right_transposed = true},
              {.batch = 5,
               .m = 12,
               .k = 8,
               .n = 32,
               .left_transposed = true,
               .epilogue = Epilogue::bias_leaky},
              {.batch = 2,
               .m = 20,
               .k = 300,
               .n = 30,
               .right_transposed = true,
               .schedule = {{"pack_b", 2}, {"block_k", 64}}}});
}

TEST(Contract, AppliesEpiloguesAndPrologues) {
  expect_all(
      {{.m = 19, .k = 21, .n = 37, .right_transposed = true, .epilogue = Epilogue::bias_leaky},
       {.m = 24, .k = 33, .n = 40, .epilogue = Epilogue::swish},
       {.m = 10, .k = 10, .n = 20, .right_transposed = true, .epilogue = Epilogue::mish_twice},
       {.m = 18, .k = 400, .n = 24, .epilogue = Epilogue::both_outputs},
       {.m = 18, .k = 30, .n = 27, .epilogue = Epilogue::both_outputs},
       {.m = 15, .k = 20, .n = 35, .prologue = Prologue::scale_left},
       {.m = 15,
        .k = 20,
        .n = 35,
        .right_transposed = true,
        .epilogue = Epilogue::swish,
        .prologue = Prologue::scale_right}});
}

TEST(Contract, MultipliesInDoublePrecision) {
  expect_all(
      {{.m = 23, .k = 29, .n = 31, .dtype = DType::float64},
       {.m = 24,
        .k = 64,
        .n = 32,
        .right_transposed = true,
        .dtype = DType::float64,
        .epilogue = Epilogue::bias_leaky},
       {.m = 12,
        .k = 600,
        .n = 9,
        .left_transposed = true,
        .right_transposed = true,
        .dtype = DType::float64},
       {.batch = 2, .m = 7, .k = 13, .n = 12, .left_transposed = true, .dtype = DType::float64}});
}

TEST(Contract, StreamsAndSplitsWhenTold) {
  expect_all(
      {{.m = 30, .k = 16, .n = 64, .schedule = {{"streaming", 1}}},
       {.m = 30, .k = 16, .n = 64, .epilogue = Epilogue::swish, .schedule = {{"streaming", 1}}},
       {.m = 20, .k = 1100, .n = 24, .schedule = {{"split_k", 4}, {"block_k", 128}}},
       {.batch = 2,
        .m = 13,
        .k = 900,
        .n = 11,
        .epilogue = Epilogue::bias_leaky,
        .schedule = {{"split_k", 2}, {"block_k", 192}, {"block_m", 6}}},
       {.m = 16,
        .k = 513,
        .n = 32,
        .schedule = {{"split_k", 4}, {"block_k", 128}, {"streaming", 1}}}});
}

TEST(Contract, AnyLegalScheduleIsRight) {
  Rng rng(kSeed);
  std::vector<ProductExample> cases;
  for (int i = 0; i < 24; ++i) {
    ProductExample spec{.batch = rng.chance(0.25) ? 1 + rng.below(3) : 0,
                        .m = 1 + rng.below(70),
                        .k = rng.chance(0.3) ? 200 + rng.below(400) : 1 + rng.below(70),
                        .n = rng.chance(0.4) ? 8 * (1 + rng.below(9)) : 1 + rng.below(80),
                        .left_transposed = rng.chance(0.5),
                        .right_transposed = rng.chance(0.5),
                        .dtype = rng.chance(0.2) ? DType::float64 : DType::float32};
    if (rng.chance(0.3)) spec.epilogue = Epilogue::bias_leaky;
    spec.schedule = random_schedule(spec, rng);
    cases.push_back(spec);
  }
  expect_all(cases);
}

TEST(Contract, PrintsForAvx512) {
  const MachineProfile machine{.threads = 2, .vector_bytes = 64};
  const std::vector<ProductExample> cases = {
      {.m = 300, .k = 700, .n = 500, .right_transposed = true, .epilogue = Epilogue::bias_leaky},
      {.m = 100, .k = 32, .n = 64, .schedule = {{"streaming", 1}}},
      {.m = 70, .k = 90, .n = 50, .left_transposed = true, .dtype = DType::float64}};
  const ScratchFolder folder;
  EXPECT_TRUE(compiles(folder.path(), joined(cases, machine), "x86-64-v4"));
}

TEST(Contract, FlattensSeveralAxesOfOnePart) {
  // y[b, i, j, n] = sum over p, q of x[b, i, p, j, q] * w[p, q, n]: m is (b, i, j) and cannot be
  // walked with one stride, k is (p, q).
  ExampleKernel made = make_example({.m = 1, .k = 1, .n = 1}, "kernel0_product");
  ir::Program& program = made.program;
  const auto reshape = [&](int index, std::vector<int64_t> shape) {
    ir::Tensor& tensor = program.tensors[static_cast<size_t>(index)];
    tensor.strides = ir::contiguous_strides(shape);
    tensor.shape = std::move(shape);
  };
  reshape(0, {2, 3, 4, 5, 6});
  reshape(1, {4, 6, 10});
  reshape(2, {2, 3, 5, 10});
  const auto axes = [](std::initializer_list<int> list) {
    std::vector<ir::ExprPtr> indices;
    for (int axis : list) indices.push_back(ir::axis(axis));
    return indices;
  };
  made.kernel.rows = {{"b", 2}, {"i", 3}, {"j", 5}, {"n", 10}};
  made.kernel.stages[0].inner = {{"p", 4}, {"q", 6}};
  made.kernel.stages[0].store = axes({0, 1, 2, 3});
  made.kernel.stages[0].body =
      ir::binary(ir::BinaryOp::mul, ir::load({0}, DType::float32, axes({0, 1, 4, 2, 5})),
                 ir::load({1}, DType::float32, axes({4, 5, 3})));
  const Result<ContractShape> shape = contract_shape(program, made.kernel);
  ASSERT_TRUE(shape.has_value());
  EXPECT_EQ(shape->m, 30);
  EXPECT_EQ(shape->n, 10);
  EXPECT_EQ(shape->k, 24);
  EXPECT_TRUE(shape->batch.empty());
  EXPECT_FALSE(shape->a.strided.has_value());
  ASSERT_TRUE(shape->b.strided.has_value());
  EXPECT_EQ(shape->b.strided->depth, 10);
}

TEST(Contract, RefusesWhatIsNoSumOfProducts) {
  const auto refusal = [](const std::function<void(ir::FusedStage&)>& change) {
    ExampleKernel made = make_example({.m = 4, .k = 4, .n = 4}, "k0");
    change(made.kernel.stages[0]);
    const Result<ContractShape> shape = contract_shape(made.program, made.kernel);
    return shape ? std::string("accepted") : shape.error().message;
  };
  EXPECT_EQ(refusal([](ir::FusedStage& stage) { stage.reduce = ir::ReduceOp::maximum; }),
            "k0 is not a sum, so it is no contraction");
  EXPECT_EQ(refusal([](ir::FusedStage& stage) { stage.accumulator = DType::int64; }),
            "k0 accumulates in int64; contractions are printed for float32 and float64");
  EXPECT_EQ(refusal([](ir::FusedStage& stage) { stage.body = stage.body->operands[0]; }),
            "k0 does not sum a product in its accumulator's type");
}

TEST(Contract, ChoicesHoldTheirPreferredValue) {
  for (const int64_t extent : {1, 20, 512, 4096}) {
    const ExampleKernel example = make_example({.m = 128, .k = extent, .n = 2 * extent}, "k0");
    for (const ScheduleChoice& choice :
         contract_skeleton().choices(example.program, example.kernel, {.threads = 2})) {
      EXPECT_TRUE(std::is_sorted(choice.values.begin(), choice.values.end())) << choice.name;
      EXPECT_EQ(std::count(choice.values.begin(), choice.values.end(), choice.preferred), 1)
          << choice.name;
    }
  }
}

TEST(Contract, EstimatesGrowWithTheWork) {
  const auto estimate = [](int64_t extent) {
    const ExampleKernel example = make_example({.m = extent, .k = extent, .n = extent}, "k0");
    return contract_skeleton().estimate_ns(example.program, example.kernel, {.threads = 2});
  };
  EXPECT_GT(estimate(64), 0);
  EXPECT_GT(estimate(512), 4 * estimate(64));
  EXPECT_GT(estimate(2048), 30 * estimate(512));
}

void expect_golden(const ProductExample& spec, const std::string& file) {
  const ExampleKernel example = make_example(spec, "kernel0_product");
  const MachineProfile machine{.threads = 2};
  PrintContext context{example.program, machine, example.kernel};
  const Result<KernelCode> code = contract_skeleton().print(context);
  ASSERT_TRUE(code.has_value());
  const std::string text =
      "// " + code->schedule + "\n" + code->functions + "\n// ke_launch:\n" + code->launch;
  const fs::path path = fs::path(KE_SOURCE_DIR) / "tests/data/golden/x86" / file;
  if (std::getenv("KE_UPDATE_GOLDEN") != nullptr) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << "KE_UPDATE_GOLDEN=1 rewrites " << path;
}

TEST(Contract, PrintsLinearAsTheGoldenSource) {
  expect_golden(
      {.m = 128, .k = 1024, .n = 512, .right_transposed = true, .epilogue = Epilogue::bias_leaky},
      "contract_linear.cpp");
}

TEST(Contract, PrintsSplitBatchesAsTheGoldenSource) {
  expect_golden({.batch = 2,
                 .m = 50,
                 .k = 1000,
                 .n = 20,
                 .left_transposed = true,
                 .schedule = {{"split_k", 2}, {"block_k", 256}, {"pack_a", 1}}},
                "contract_split.cpp");
}

}  // namespace
}  // namespace ke::x86
