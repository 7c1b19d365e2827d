// SPDX-License-Identifier: Apache-2.0
//
// Compiles the mathematical helpers and sweeps them against long double.
#include "target/x86/vector_math.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/rng.hpp"
#include "target/target.hpp"
#include "target/x86/helpers.hpp"

namespace ke::x86 {
namespace {

struct Function {
  const char* name;
  long double (*truth)(long double);
  double max_ulp;
};

const Function kFunctions[] = {
    {"exp", std::exp, 1.5},   {"exp2", std::exp2, 1.5}, {"expm1", std::expm1, 2},
    {"log", std::log, 1},     {"log2", std::log2, 2},   {"log10", std::log10, 2},
    {"log1p", std::log1p, 2}, {"tanh", std::tanh, 2},   {"erf", std::erf, 2},
    {"sin", std::sin, 2},     {"cos", std::cos, 2},     {"sqrt", std::sqrt, 0.51},
    {"sinh", std::sinh, 2.5}, {"atan", std::atan, 1.5}};

// One library with `void run_NAME(const float* x, float* y, int64_t n)` for every function.
std::string sweep_source() {
  std::set<std::string> keys = {"load:f32x8", "store:f32x8"};
  std::string runs;
  for (const Function& function : kFunctions) {
    keys.insert(fmt::format("{}:f32x8", function.name));
    runs += fmt::format(
        "extern \"C\" void run_{0}(const float* x, float* y, int64_t n) {{\n"
        "  for (int64_t i = 0; i < n; i += 8) store_f32x8(y + i, {0}_of(load_f32x8(x + i)));\n}}\n",
        function.name);
  }
  return "#include <stdint.h>\n" + helper_sources(keys) + runs;
}

void* build(const std::string& source) {
  const auto target = find_target("x86")->make();
  std::string pattern = (std::filesystem::temp_directory_path() / "ke_math_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return nullptr;
  const std::filesystem::path folder = pattern;
  std::ofstream(folder / "kernel.cpp") << source;
  std::string command;
  const Result<BuildRecipe> recipe = target->recipe(source);
  if (!recipe) return nullptr;
  for (std::string word : recipe->command) {
    if (word == "{source}") word = (folder / "kernel.cpp").string();
    if (word == "{output}") word = (folder / "kernel.so").string();
    command += word + " ";
  }
  void* library = nullptr;
  if (system(command.c_str()) == 0) library = dlopen((folder / "kernel.so").c_str(), RTLD_NOW);
  std::filesystem::remove_all(folder);
  return library;
}

// Random bit patterns (every exponent, subnormals, NaN), values near zero and one, and specials.
std::vector<float> sweep_points() {
  std::vector<float> points = {0.0f,   -0.0f,  INFINITY, -INFINITY, NAN,    1.0f,
                               -1.0f,  1e-45f, -1e-45f,  3e38f,     -3e38f, 0.5f,
                               88.72f, 88.73f, -103.9f,  -104.1f};
  Rng rng(11);
  for (int i = 0; i < 8000; ++i) {
    const auto bits = static_cast<uint32_t>(rng.next());
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    points.push_back(value);
    points.push_back(static_cast<float>(2 * rng.uniform() - 1));
    points.push_back(static_cast<float>(200 * rng.uniform() - 100));
    points.push_back(static_cast<float>(1 + 0.01 * rng.normal()));
  }
  points.resize(points.size() / 8 * 8);
  return points;
}

double ulp_error(float actual, long double truth) {
  const auto rounded = static_cast<float>(truth);
  if (std::isnan(rounded)) return std::isnan(actual) ? 0 : INFINITY;
  if (actual == rounded) return 0;
  if (!std::isfinite(actual) || !std::isfinite(rounded)) return INFINITY;
  const float size = std::abs(rounded);
  const float ulp = std::nextafter(size, INFINITY) - size;
  return static_cast<double>(std::abs(static_cast<long double>(actual) - truth) /
                             static_cast<long double>(ulp));
}

TEST(VectorMath, StaysWithinItsUlpBoundEverywhere) {
  if (!find_target("x86")->make()->toolchain()) GTEST_SKIP() << "no g++";
  void* library = build(sweep_source());
  ASSERT_NE(library, nullptr);
  const std::vector<float> x = sweep_points();
  std::vector<float> y(x.size());
  for (const Function& function : kFunctions) {
    using Sweep = void (*)(const float*, float*, int64_t);
    const std::string symbol = fmt::format("run_{}", function.name);
    const auto run = reinterpret_cast<Sweep>(dlsym(library, symbol.c_str()));
    ASSERT_NE(run, nullptr) << symbol;
    run(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = ulp_error(y[i], function.truth(static_cast<long double>(x[i])));
      if (error > worst) {
        worst = error;
        where = x[i];
      }
    }
    RecordProperty(std::string(function.name) + "_max_ulp", fmt::format("{:.2f}", worst));
    EXPECT_LE(worst, function.max_ulp) << function.name << " at " << where;
  }
  dlclose(library);
}

}  // namespace
}  // namespace ke::x86
