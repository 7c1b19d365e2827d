// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on tensor cores whose input has a range that fp16 does not, under the host
// emulation: judged as a problem's outputs are, against float64 and beside what PyTorch would have
// computed, in TF32 for one term and in IEEE arithmetic for three.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "target/cuda/emulated_convolutions.hpp"

namespace ke::cuda {
namespace {

using ir::TensorBytes;
using Values = std::vector<double>;
// Changes the input and the weights of a convolution.
using Change = std::function<void(std::vector<float>& x, std::vector<float>& w)>;

template <class T>
Values values_of(const TensorBytes& bytes) {
  std::vector<T> typed(bytes.size() / sizeof(T));
  std::memcpy(typed.data(), bytes.data(), bytes.size());
  return Values(typed.begin(), typed.end());
}

template <class T>
TensorBytes bytes_from(const Values& values) {
  const std::vector<T> typed(values.begin(), values.end());
  TensorBytes bytes(typed.size() * sizeof(T));
  std::memcpy(bytes.data(), typed.data(), bytes.size());
  return bytes;
}

float rounded_to_tf32(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits >> 23 & 0xff) != 0xff) bits = (bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

// The output of a convolution computed in T, from inputs that `round` made.
template <class T>
Values computed(const Convolution& c, const std::vector<TensorBytes>& inputs,
                const std::function<float(float)>& round) {
  std::string text = text_of(c);
  if (sizeof(T) == 8) {
    for (size_t at = 0; (at = text.find("float32", at)) != std::string::npos;) {
      text.replace(at, 7, "float64");
    }
  }
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program) << program.error().to_string();
  std::vector<TensorBytes> typed;
  for (const TensorBytes& bytes : inputs) {
    Values values = values_of<float>(bytes);
    for (double& value : values) value = round(static_cast<float>(value));
    typed.push_back(bytes_from<T>(values));
  }
  const auto results = ir::interpret(*program, typed);
  EXPECT_TRUE(results) << results.error().to_string();
  return values_of<T>((*results)[0]);
}

struct Errors {
  double rms = 0, max = 0, rms_truth = 0;
};
Errors errors_of(const Values& got, const Values& truth) {
  Errors errors;
  for (size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(truth[i]) || !std::isfinite(got[i])) continue;
    const double error = std::fabs(got[i] - truth[i]);
    errors.rms += error * error;
    errors.max = std::max(errors.max, error);
    errors.rms_truth += truth[i] * truth[i];
  }
  errors.rms = std::sqrt(errors.rms / static_cast<double>(truth.size()));
  errors.rms_truth = std::sqrt(errors.rms_truth / static_cast<double>(truth.size()));
  return errors;
}

// One convolution with one kind of input.
struct Probe {
  Convolution convolution;
  int64_t terms;
  ConformanceCase printed;
  double atol = 1e-4;

  Values truth() const {
    return computed<double>(convolution, printed.inputs, [](float x) { return x; });
  }
  // As honest as it gets.
  Values reference(Values truth) const {
    if (terms == 1) return computed<float>(convolution, printed.inputs, rounded_to_tf32);
    for (double& value : truth) value = static_cast<float>(value);
    return truth;
  }
};

Probe probe_of(Convolution c, int64_t terms, const std::string& what, const Change& change) {
  c.name += ", " + what;
  Probe probe{c, terms, on_tensor_cores(c, terms).front()};
  std::vector<TensorBytes>& inputs = probe.printed.inputs;
  if (terms == 1) {
    const Values truth = probe.truth();
    probe.atol = std::max(probe.atol, 32 * errors_of(probe.reference(truth), truth).rms);
  }
  const Values x_values = values_of<float>(inputs[0]), w_values = values_of<float>(inputs[1]);
  std::vector<float> x(x_values.begin(), x_values.end()), w(w_values.begin(), w_values.end());
  change(x, w);
  std::memcpy(inputs[0].data(), x.data(), inputs[0].size());
  std::memcpy(inputs[1].data(), w.data(), inputs[1].size());
  return probe;
}

// The budget of docs/decisions: pooled errors beside the reference's, and every element for itself.
void expect_within_budget(const Probe& probe, const TensorBytes& output) {
  constexpr double kRoundoff = 0x1p-24, kRelative = 1e-4;
  const Values truth = probe.truth(), reference = probe.reference(truth);
  const Values got = values_of<float>(output);
  const Errors own = errors_of(got, truth), honest = errors_of(reference, truth);
  int64_t terms = probe.convolution.channels;
  for (size_t d = 0; d < probe.convolution.places.size(); ++d) terms *= probe.convolution.kernel;
  const double floor =
      std::min(kRoundoff * std::sqrt(static_cast<double>(terms)), 512 * kRoundoff) * own.rms_truth;
  EXPECT_LE(own.rms, std::max(8 * honest.rms, floor));
  EXPECT_LE(own.max, std::max(8 * honest.max, 4 * floor));
  int wrong = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double allowed = probe.atol + kRelative * std::fabs(truth[i]);
    if (std::isfinite(truth[i]) != std::isfinite(got[i])) {
      ++wrong;
    } else if (std::isfinite(truth[i]) && std::fabs(reference[i] - truth[i]) <= allowed) {
      wrong += std::fabs(got[i] - truth[i]) <= allowed ? 0 : 1;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << truth.size() << " elements";
}

void expect_within_budget(const std::vector<Probe>& probes) {
  std::vector<ConformanceCase> cases;
  for (const Probe& probe : probes) cases.push_back(probe.printed);
  const target::PrintedTogether printed =
      target::print_together(*find_target("cuda")->make(), cases, {});
  ASSERT_EQ(printed.cases.size(), probes.size()) << "some were refused";
  const EmulatedSource source(printed.source);
  if (!source.ready()) return;
  for (size_t i = 0; i < probes.size(); ++i) {
    SCOPED_TRACE(probes[i].printed.name);
    expect_within_budget(probes[i],
                         source.run(i, probes[i].printed.program, probes[i].printed.inputs)[0]);
  }
}

Change planted(float value) {
  return [value](std::vector<float>& x, std::vector<float>&) { x[x.size() / 3] = value; };
}

Change scaled(int power) {
  return [power](std::vector<float>& x, std::vector<float>&) {
    for (float& value : x) value = std::ldexp(value, power);
  };
}

// As the judge's probe of special values does.
Change special() {
  return [](std::vector<float>& x, std::vector<float>&) {
    const float values[] = {0x1p40f,           -0.0f,
                            0x1p-128f,         -0x1p-128f,
                            0x1p-126f,         __builtin_inff(),
                            -__builtin_inff(), __builtin_nanf("")};
    for (size_t i = 0; i < std::size(values); ++i) x[(i * 977 + 400) % x.size()] = values[i];
  };
}

// Images of several parts, whose magnitudes are found apart, and one of a single part.
const Convolution kPlane{
    .name = "plane", .batch = 1, .channels = 16, .outs = 3, .places = {24, 28}};
const Convolution kSmall{.name = "small", .outs = 6, .places = {9, 9}};
const Convolution kSpace{
    .name = "space", .batch = 1, .channels = 10, .outs = 3, .places = {9, 10, 12}};
const Convolution kTransposed{.name = "transposed",
                              .batch = 1,
                              .channels = 16,
                              .outs = 3,
                              .places = {25, 24},
                              .kernel = 3,
                              .stride = 2,
                              .transposed = true};

TEST(CudaRanges, ConvolutionsWithOneLargeElementKeepTheRest) {
  std::vector<Probe> probes;
  for (const Convolution& c : {kPlane, kSmall, kSpace, kTransposed}) {
    probes.push_back(probe_of(c, 3, "planted 2^40", planted(0x1p40f)));
  }
  for (const Convolution& c : {kPlane, kSmall}) {
    probes.push_back(probe_of(c, 1, "planted 2^40", planted(0x1p40f)));
  }
  probes.push_back(probe_of(kPlane, 3, "planted -2^20", planted(-0x1.8p20f)));
  expect_within_budget(probes);
}

TEST(CudaRanges, ConvolutionsOfSpecialValuesAreWithinBudget) {
  std::vector<Probe> probes;
  for (const Convolution& c : {kPlane, kSpace, kTransposed}) {
    probes.push_back(probe_of(c, 3, "special", special()));
  }
  probes.push_back(probe_of(kPlane, 1, "special", special()));
  for (const int64_t terms : {1, 3}) {
    probes.push_back(probe_of(kSmall, terms, "planted NaN", planted(__builtin_nanf(""))));
    probes.push_back(probe_of(kSmall, terms, "planted infinity", planted(__builtin_inff())));
    probes.push_back(probe_of(kSmall, terms, "planted denormal", planted(0x1p-130f)));
  }
  expect_within_budget(probes);
}

TEST(CudaRanges, ConvolutionsOfTinyOrHugeInputsAreWithinBudget) {
  std::vector<Probe> probes;
  for (const int power : {-40, -100, 40}) {
    probes.push_back(probe_of(kPlane, 3, fmt::format("times 2^{}", power), scaled(power)));
    probes.back().atol = std::ldexp(1e-4, power);  // beside what there is
  }
  // A corner of the image is far below the rest. Nothing cancels, so that all of it counts.
  const Change dim_corner = [](std::vector<float>& x, std::vector<float>& w) {
    for (float& value : w) value = std::fabs(value);
    for (size_t i = 0; i < x.size(); ++i) {
      const bool corner = i / 28 % 24 < 12 && i % 28 < 12;
      x[i] = std::ldexp(std::fabs(x[i]), corner ? -34 : 0);
    }
  };
  probes.push_back(probe_of(kPlane, 3, "dim corner", dim_corner));
  probes.back().atol = 0;
  expect_within_budget(probes);
}

}  // namespace
}  // namespace ke::cuda
