// SPDX-License-Identifier: Apache-2.0
#include "target/conformance.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/rng.hpp"
#include "ir/random_program.hpp"
#include "ir/scalar.hpp"
#include "kernelevolve/kernel.h"
#include "target/device_package.hpp"

namespace ke::target {
namespace {

using ir::DType;
using ir::ExprPtr;
using ir::Program;
using ir::Tensor;
using ir::TensorBytes;
using ir::TensorId;

constexpr size_t kAlignment = 64;

// --- Cases --------------------------------------------------------------------------------------

constexpr int64_t kElements = 83;  // vectors and a rest

Program map_program(DType from, DType to, int inputs, const ExprPtr& body) {
  Program program;
  const auto add = [&](std::string name, DType dtype, ir::Role role) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.dtype = dtype;
    tensor.shape = {kElements};
    tensor.strides = {1};
    tensor.role = role;
    program.tensors.push_back(tensor);
  };
  for (int i = 0; i < inputs; ++i) {
    add(fmt::format("x{}", i), from, ir::Role::input);
    program.inputs.push_back(TensorId{i});
  }
  add("y", to, ir::Role::output);
  program.outputs.push_back(TensorId{inputs});
  ir::Stage stage;
  stage.output = TensorId{inputs};
  stage.parallel = {{"i", kElements}};
  stage.body = body;
  stage.origin = "one operation";
  program.stages.push_back(stage);
  return program;
}

ConformanceCase operation_case(std::string name, Program program, Rng& rng) {
  ConformanceCase one;
  one.name = std::move(name);
  one.plan = ir::fuse_greedily(program);
  one.inputs = ir::random_inputs(program, rng, /*specials=*/true);
  one.program = std::move(program);
  one.of_largest = 0;
  return one;
}

constexpr DType kTypes[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16,
                            DType::int64,   DType::int32,   DType::int16,   DType::int8,
                            DType::uint8,   DType::boolean};

double tolerance_of(DType dtype) {
  if (dtype == DType::float16) return 1e-3;
  return dtype == DType::bfloat16 ? 8e-3 : 4e-7;
}

// --- Running ------------------------------------------------------------------------------------

struct Aligned {
  std::vector<std::byte> storage;
  std::byte* data = nullptr;

  explicit Aligned(size_t bytes) : storage(bytes + 2 * kAlignment) {
    const auto address = reinterpret_cast<uintptr_t>(storage.data());
    data = storage.data() + (kAlignment - address % kAlignment) % kAlignment;
  }
};

// Tasks run in reverse: nothing may depend on their order.
void run_backwards(void*, int64_t count, void (*body)(int64_t, void*), void* argument) {
  for (int64_t i = count; i-- > 0;) body(i, argument);
}

ke_tensor describe(const Tensor& tensor, void* data) {
  ke_tensor result{};
  result.data = data;
  result.shape = tensor.shape.empty() ? nullptr : tensor.shape.data();
  result.strides = tensor.strides.empty() ? nullptr : tensor.strides.data();
  result.ndim = static_cast<int32_t>(tensor.shape.size());
  result.dtype_bits = static_cast<uint8_t>(8 * bytes_of(tensor.dtype));
  result.dtype_lanes = 1;
  result.dtype_code = is_floating(tensor.dtype)        ? KE_DTYPE_FLOAT
                      : tensor.dtype == DType::boolean ? KE_DTYPE_BOOL
                      : tensor.dtype == DType::uint8   ? KE_DTYPE_UINT
                                                       : KE_DTYPE_INT;
  if (tensor.dtype == DType::bfloat16) result.dtype_code = KE_DTYPE_BFLOAT;
  return result;
}

using Launch = int (*)(const ke_tensor*, int32_t, ke_tensor*, int32_t, ke_context*);
using ScratchBytes = int64_t (*)();

std::vector<TensorBytes> run(const ConformanceCase& one, Launch launch, ScratchBytes scratch) {
  std::vector<Aligned> buffers;
  std::vector<ke_tensor> inputs, outputs;
  buffers.reserve(one.inputs.size() + one.program.outputs.size());
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    Aligned& buffer = buffers.emplace_back(one.inputs[i].size());
    if (!one.inputs[i].empty()) {
      std::memcpy(buffer.data, one.inputs[i].data(), one.inputs[i].size());
    }
    inputs.push_back(describe(one.program.tensor(one.program.inputs[i]), buffer.data));
  }
  for (const TensorId id : one.program.outputs) {
    const Tensor& tensor = one.program.tensor(id);
    const auto bytes = static_cast<size_t>(tensor.elements() * bytes_of(tensor.dtype));
    Aligned& buffer = buffers.emplace_back(bytes);
    std::fill(buffer.storage.begin(), buffer.storage.end(), std::byte{0xa5});
    outputs.push_back(describe(tensor, buffer.data));
  }
  const int64_t scratch_bytes = scratch == nullptr ? 0 : scratch();
  Aligned room(static_cast<size_t>(scratch_bytes));
  ke_context context{room.data, scratch_bytes, 2, nullptr, run_backwards, nullptr};
  EXPECT_EQ(launch(inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                   static_cast<int32_t>(outputs.size()), &context),
            0)
      << one.name;
  std::vector<TensorBytes> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Aligned& buffer = buffers[one.inputs.size() + i];
    const Tensor& tensor = one.program.tensor(one.program.outputs[i]);
    const auto bytes = static_cast<size_t>(tensor.elements() * bytes_of(tensor.dtype));
    results.emplace_back(buffer.data, buffer.data + bytes);
  }
  return results;
}

// --- Comparing ----------------------------------------------------------------------------------

double element_at(const TensorBytes& bytes, DType dtype, size_t i) {
  const auto read = [&](auto sample) {
    std::memcpy(&sample, bytes.data() + i * sizeof sample, sizeof sample);
    return sample;
  };
  switch (dtype) {
    case DType::float64:
      return read(0.0);
    case DType::float32:
      return static_cast<double>(read(0.0f));
    case DType::float16:
      return static_cast<double>(ir::half_value(read(uint16_t{})));
    case DType::bfloat16:
      return static_cast<double>(ir::bfloat_value(read(uint16_t{})));
    case DType::int64:
      return static_cast<double>(read(int64_t{}));
    case DType::int32:
      return read(int32_t{});
    case DType::int16:
      return read(int16_t{});
    case DType::int8:
      return read(int8_t{});
    case DType::uint8:
    case DType::boolean:
      return read(uint8_t{});
  }
  return 0;
}

void compare(const ConformanceCase& one, const Tensor& tensor, const TensorBytes& actual,
             const TensorBytes& expected) {
  ASSERT_EQ(actual.size(), expected.size()) << one.name;
  if (!is_floating(tensor.dtype)) {
    EXPECT_EQ(actual, expected) << one.name << ", " << tensor.name << "\n" << print(one.program);
    return;
  }
  const size_t count = actual.size() / static_cast<size_t>(bytes_of(tensor.dtype));
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = std::abs(element_at(expected, tensor.dtype, i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double smallest = tensor.dtype == DType::float16 ? 6e-8 : 3e-45;
  for (size_t i = 0; i < count; ++i) {
    const double a = element_at(actual, tensor.dtype, i);
    const double e = element_at(expected, tensor.dtype, i);
    const double limit = one.relative * std::abs(e) + one.of_largest * largest + smallest;
    const bool same = a == e || (std::isnan(a) && std::isnan(e)) || std::abs(a - e) <= limit;
    ASSERT_TRUE(same) << one.name << ", " << tensor.name << "[" << i << "]: " << a << " instead of "
                      << e << "\n"
                      << print(one.program);
  }
}

// One translation unit in which source k's entry points are called ke_launch_k and so on.
std::string joined(const std::vector<std::string>& sources) {
  std::string text = "#include <stdint.h>\n#include \"kernelevolve/kernel.h\"\n";
  for (size_t k = 0; k < sources.size(); ++k) {
    text += fmt::format(
        "#define ke_launch ke_launch_{0}\n#define ke_scratch_bytes ke_scratch_bytes_{0}\n"
        "namespace program{0} {{\n{1}\n}}\n#undef ke_launch\n#undef ke_scratch_bytes\n",
        k, sources[k]);
  }
  return text;
}

std::string replaced(std::string text, std::string_view what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what)) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// Builds a source with the target's recipe, in a fresh folder. Null, with a failed test, when the
// compiler refuses it.
void* build(const Target& target, const std::string& source, const std::filesystem::path& folder) {
  const Result<BuildRecipe> recipe = target.recipe(source);
  if (!recipe) {
    ADD_FAILURE() << recipe.error().to_string();
    return nullptr;
  }
  const std::filesystem::path in = folder / recipe->source_name, out = folder / recipe->output_name;
  std::ofstream(in) << source;
  std::string command;
  for (std::string word : recipe->command) {
    word = replaced(word, "{source}", in.string());
    word = replaced(word, "{output}", out.string());
    word = replaced(word, "{include}", KE_SOURCE_DIR "/include");
    command += "'" + word + "' ";
  }
  if (system(command.c_str()) != 0) {
    ADD_FAILURE() << "the compiler refused " << in;
    return nullptr;
  }
  void* library = dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) ADD_FAILURE() << dlerror();
  return library;
}

void run_and_compare(void* library, size_t k, const ConformanceCase& one) {
  const auto launch =
      reinterpret_cast<Launch>(dlsym(library, fmt::format("ke_launch_{}", k).c_str()));
  const auto scratch =
      reinterpret_cast<ScratchBytes>(dlsym(library, fmt::format("ke_scratch_bytes_{}", k).c_str()));
  ASSERT_NE(launch, nullptr) << one.name;
  expect_result(one, run(one, launch, scratch));
}

// Compiles each batch with the target's own compiler.
void expect_compiles(const TargetInfo& info, const std::vector<ConformanceCase>& cases,
                     const MachineProfile& machine) {
  constexpr size_t kBatch = 64;
  const auto target = info.make();
  std::string pattern = (std::filesystem::temp_directory_path() / "ke_conformance_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = pattern;
  for (size_t first = 0; first < cases.size(); first += kBatch) {
    const size_t count = std::min(kBatch, cases.size() - first);
    const std::string source =
        print_together(*target, std::span(cases).subspan(first, count), machine).source;
    const Result<BuildRecipe> recipe = target->recipe(source);
    ASSERT_TRUE(recipe) << recipe.error().to_string();
    const std::filesystem::path in = folder / recipe->source_name;
    const std::filesystem::path out = folder / recipe->output_name;
    std::ofstream(in) << source;
    ASSERT_EQ(recipe->command.at(1), kCompileCommand) << "a device target brings its compiler";
    std::vector<std::string> arguments;
    for (size_t i = 3; i < recipe->command.size(); ++i) {
      arguments.push_back(replaced(replaced(recipe->command[i], "{source}", in.string()),
                                   "{output}", out.string()));
    }
    testing::internal::CaptureStderr();
    const int code = info.compile(arguments);
    const std::string log = testing::internal::GetCapturedStderr();
    ASSERT_EQ(code, 0) << in << " does not compile:\n" << log.substr(0, 4000);
    std::ifstream file(out, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    const auto package = decode_package(bytes);
    ASSERT_TRUE(package) << package.error().to_string();
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

void plant_large_terms(ConformanceCase& one, int64_t length) {
  // Below half a unit in the last place of the large one; longer runs than of 24 lose too much.
  const float small = 0x1.8p-25f, large = 0x1.fcp0f;
  TensorBytes& bytes = one.inputs[0];
  const auto count = static_cast<int64_t>(bytes.size() / sizeof small);
  for (int64_t i = 0; i < count; ++i) {
    const bool planted = i % length == i / length * 997 % length;
    std::memcpy(bytes.data() + i * sizeof small, planted ? &large : &small, sizeof small);
  }
  one.relative = 6e-7;
  one.of_largest = 0;
}

void expect_result(const ConformanceCase& one, const std::vector<TensorBytes>& actual) {
  const auto expected = ir::interpret(one.program, one.inputs);
  ASSERT_TRUE(expected.has_value()) << expected.error().to_string();
  ASSERT_EQ(actual.size(), expected->size()) << one.name;
  for (size_t i = 0; i < actual.size(); ++i) {
    compare(one, one.program.tensor(one.program.outputs[i]), actual[i], (*expected)[i]);
  }
}

PrintedTogether print_together(const Target& target, std::span<const ConformanceCase> cases,
                               const MachineProfile& machine) {
  std::vector<std::vector<ir::FusedKernel>> kernels;
  std::vector<CaseKernels> all;
  PrintedTogether result;
  for (const ConformanceCase& one : cases) {
    auto realized = ir::realize(one.program, one.plan);
    EXPECT_TRUE(realized.has_value()) << one.name << ": " << realized.error().to_string();
    if (!realized) continue;
    const Result<std::string> alone = target.print(one.program, *realized, machine);
    if (!alone && alone.error().code == Errc::unavailable) continue;  // said in a sentence
    EXPECT_TRUE(alone.has_value()) << one.name << ": " << alone.error().to_string();
    kernels.push_back(std::move(*realized));
    result.cases.push_back(&one);
  }
  for (size_t i = 0; i < result.cases.size(); ++i) {
    all.push_back({&result.cases[i]->program, kernels[i]});
  }
  EXPECT_GE(result.cases.size() * 10, cases.size() * 9) << "too much was refused";
  if (!all.empty()) result.source = target.print_cases(all, machine).value_or("");
  return result;
}

void expect_conformance(const TargetInfo& info, const std::vector<ConformanceCase>& cases,
                        const MachineProfile& machine) {
  const auto target = info.make();
  if (info.device == nullptr) return expect_conformance(*target, cases, machine);
  if (!target->toolchain()) GTEST_SKIP() << target->toolchain().error().to_string();
  expect_compiles(info, cases, machine);
  const Result<std::string> device = info.device();
  GTEST_SKIP() << "compiled, not run: "
               << (device ? "this suite has no launcher for " + *device : device.error().message);
}

void expect_conformance(const Target& target, const std::vector<ConformanceCase>& cases,
                        const MachineProfile& machine) {
  if (!target.toolchain()) GTEST_SKIP() << target.toolchain().error().to_string();
  std::vector<std::string> sources;
  std::vector<const ConformanceCase*> printed;
  for (const ConformanceCase& one : cases) {
    const auto kernels = ir::realize(one.program, one.plan);
    ASSERT_TRUE(kernels.has_value()) << one.name << ": " << kernels.error().to_string();
    const Result<std::string> source = target.print(one.program, *kernels, machine);
    if (!source && source.error().code == Errc::unavailable) continue;  // said in a sentence
    ASSERT_TRUE(source.has_value()) << one.name << ": " << source.error().to_string();
    sources.push_back(*source);
    printed.push_back(&one);
  }
  EXPECT_GE(printed.size() * 10, cases.size() * 9) << "too much was refused";
  std::string pattern = (std::filesystem::temp_directory_path() / "ke_conformance_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::filesystem::path folder = pattern;
  void* library = build(target, joined(sources), folder);
  if (library == nullptr) return;  // the folder is kept for reading
  for (size_t k = 0; k < printed.size(); ++k) run_and_compare(library, k, *printed[k]);
  dlclose(library);
  std::filesystem::remove_all(folder);
}

std::vector<ConformanceCase> operation_cases() {
  std::vector<ConformanceCase> cases;
  Rng rng(7);
  const auto x = [](DType dtype, int i) { return ir::load(TensorId{i}, dtype, {ir::axis(0)}); };
  for (const DType dtype : kTypes) {
    const std::string type(enum_name(dtype));
    for (size_t k = 0; k < kEnumNames<ir::UnaryOp>.size(); ++k) {
      const auto op = static_cast<ir::UnaryOp>(k);
      if (!ir::accepts(op, dtype)) continue;
      // Lowering writes the complement of a boolean as logical_not, as torch means it.
      if (op == ir::UnaryOp::bit_not && dtype == DType::boolean) continue;
      const ExprPtr body = ir::unary(op, x(dtype, 0));
      cases.push_back(operation_case(fmt::format("{} of {}", enum_name(op), type),
                                     map_program(dtype, body->dtype, 1, body), rng));
      cases.back().relative = tolerance_of(dtype);
    }
    for (size_t k = 0; k < kEnumNames<ir::BinaryOp>.size(); ++k) {
      const auto op = static_cast<ir::BinaryOp>(k);
      if (!ir::accepts(op, dtype)) continue;
      const ExprPtr body = ir::binary(op, x(dtype, 0), x(dtype, 1));
      cases.push_back(operation_case(fmt::format("{} of {}", enum_name(op), type),
                                     map_program(dtype, body->dtype, 2, body), rng));
      cases.back().relative = tolerance_of(dtype);
    }
    for (const DType to : kTypes) {
      if (is_floating(dtype) && !is_floating(to) && to != DType::boolean) continue;
      cases.push_back(operation_case(fmt::format("{} to {}", type, enum_name(to)),
                                     map_program(dtype, to, 1, ir::cast(to, x(dtype, 0))), rng));
      cases.back().relative = tolerance_of(to);
    }
  }
  return cases;
}

std::vector<ConformanceCase> random_cases(const Target& target, uint64_t seed, int count,
                                          const MachineProfile& machine) {
  std::vector<ConformanceCase> cases;
  for (int k = 0; k < count; ++k) {
    Rng rng = Rng(seed).split(fmt::format("program {}", k));
    ir::RandomProgramOptions options;
    options.unusual_functions = false;  // they jump; operation_cases() has them
    options.half_types = false;
    ConformanceCase one;
    one.name = fmt::format("seed {} program {}", seed, k);
    one.program = ir::random_program(rng, options);
    one.plan = ir::fuse_greedily(one.program);
    if (rng.chance(0.4)) {
      const std::vector<ir::Plan> others = ir::fusion_neighbours(one.program, one.plan);
      if (!others.empty()) one.plan = rng.pick(others);
    }
    const auto kernels = ir::realize(one.program, one.plan);
    if (!kernels) continue;
    for (size_t i = 0; i < kernels->size(); ++i) {
      for (const ScheduleChoice& choice : target.choices(one.program, (*kernels)[i], machine)) {
        if (rng.chance(0.5)) one.plan.kernels[i].schedule[choice.name] = rng.pick(choice.values);
      }
    }
    one.inputs = ir::random_inputs(one.program, rng);
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace ke::target
