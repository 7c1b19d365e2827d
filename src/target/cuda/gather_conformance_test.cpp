// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on tensor cores, whose input is gathered piece by piece, under the host emulation.
#include <cmath>
#include <cstring>

#include "target/cuda/emulated_cases.hpp"

namespace ke::cuda {
namespace {

struct Convolution {
  std::string name;
  int64_t batch = 2, groups = 1, channels = 8, outs = 12;  // channels and outs of a group
  std::vector<int64_t> places{9, 10};                      // of the input
  int64_t kernel = 3, stride = 1, padding = 1, dilation = 1;
  bool transposed = false;
  std::string type = "float32";
  std::string strides;  // of the input, where they are not contiguous

  int64_t outputs_along(int64_t places_along) const {
    const int64_t reach = dilation * (kernel - 1);
    return transposed ? (places_along - 1) * stride - 2 * padding + reach + 1
                      : (places_along + 2 * padding - reach - 1) / stride + 1;
  }
};

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// One index of the input, and what must hold for it.
std::pair<std::string, std::string> place(const Convolution& c, int64_t extent, size_t out,
                                          size_t tap) {
  const std::string i = fmt::format("i{}", out), u = fmt::format("mul(i{}, {})", tap, c.dilation);
  std::string at = fmt::format("add(add(mul({}, {}), {}), {})", i, c.stride, u, -c.padding);
  std::string also;
  if (c.transposed) {
    const std::string reached = fmt::format("sub(add({}, {}), {})", i, c.padding, u);
    also = fmt::format("eq(mod({}, {}), 0)", reached, c.stride);
    at = fmt::format("floor_div({}, {})", reached, c.stride);
  }
  std::string inside = fmt::format("logical_and(ge({0}, 0), lt({0}, {1}))", at, extent);
  if (!also.empty()) inside = fmt::format("logical_and({}, {})", also, inside);
  return {at, inside};
}

// y = relu(convolution(x, w)).
std::string text_of(const Convolution& c) {
  const size_t dims = c.places.size(), first_place = c.groups > 1 ? 3 : 2;
  const size_t channel = first_place + dims;
  std::vector<std::string> x{std::to_string(c.batch), std::to_string(c.groups * c.channels)};
  std::vector<std::string> w{std::to_string(c.outs), std::to_string(c.channels)};
  if (c.transposed) std::swap(w[0], w[1]);
  if (c.groups > 1) w.insert(w.begin(), std::to_string(c.groups));
  std::vector<std::string> rows{fmt::format("n={}", c.batch)};
  std::vector<std::string> y{std::to_string(c.batch)};
  if (c.groups > 1) {
    rows.push_back(fmt::format("g={}", c.groups));
    y.push_back(std::to_string(c.groups));
  }
  rows.push_back(fmt::format("o={}", c.outs));
  y.push_back(std::to_string(c.outs));
  std::vector<std::string> inner{fmt::format("c={}", c.channels)};
  const std::string o = fmt::format("i{}", first_place - 1), k = fmt::format("i{}", channel);
  std::vector<std::string> x_at{
      "i0", c.groups > 1 ? fmt::format("add(mul(i1, {}), {})", c.channels, k) : k};
  std::vector<std::string> w_at = c.transposed ? std::vector{k, o} : std::vector{o, k};
  if (c.groups > 1) w_at.insert(w_at.begin(), "i1");
  std::string guard;
  for (size_t d = 0; d < dims; ++d) {
    const auto [at, inside] = place(c, c.places[d], first_place + d, channel + 1 + d);
    x.push_back(std::to_string(c.places[d]));
    w.push_back(std::to_string(c.kernel));
    rows.push_back(fmt::format("i{}={}", d, c.outputs_along(c.places[d])));
    y.push_back(std::to_string(c.outputs_along(c.places[d])));
    inner.push_back(fmt::format("u{}={}", d, c.kernel));
    x_at.push_back(at);
    w_at.push_back(fmt::format("i{}", channel + 1 + d));
    guard = guard.empty() ? inside : fmt::format("logical_and({}, {})", guard, inside);
  }
  std::vector<std::string> own;
  for (size_t i = 0; i < rows.size(); ++i) own.push_back(fmt::format("i{}", i));
  const std::string rows_text = joined(rows), y_text = joined(y);
  const bool half = c.type != "float32";
  const auto load = [&](const char* tensor, const std::vector<std::string>& at) {
    const std::string text = fmt::format("load {}[{}]", tensor, joined(at));
    return half ? fmt::format("cast(float32, {})", text) : text;
  };
  return fmt::format("tensor %0 x: {0}[{1}]{2} input\ntensor %1 w: {0}[{3}] input\n", c.type,
                     joined(x), c.strides, joined(w)) +
         fmt::format("tensor %2 p: float32[{0}] intermediate\ntensor %3 y: float32[{0}] output\n",
                     y_text) +
         fmt::format(
             "inputs %0, %1\nstage %2[{}] = sum[{}] in float32: mul(select({}, {}, "
             "0.0:float32), {})  # aten.convolution.default\n",
             rows_text, joined(inner), guard, load("%0", x_at), load("%1", w_at)) +
         fmt::format("stage %3[{}] = map: maximum(load %2[{}], 0.0:float32)  # relu\noutputs %3\n",
                     rows_text, joined(own));
}

std::vector<ConformanceCase> on_tensor_cores(const Convolution& c, int64_t terms) {
  ir::Schedule schedule{{"tensor_core", 1}};
  if (c.type == "float32") schedule["terms"] = terms;
  std::vector<ConformanceCase> cases = scheduled(c.name, text_of(c), {schedule});
  for (ConformanceCase& one : cases) {
    if (terms == 1 && c.type == "float32") {
      one.relative = 0;
      one.of_largest = 2e-3;
    }
  }
  return cases;
}

// Whether the printed source gathers, and packs before: a test of tiles would say nothing here.
void expect_gathers(const ConformanceCase& one, bool packs) {
  const auto kernels = ir::realize(one.program, one.plan);
  ASSERT_TRUE(kernels) << kernels.error().to_string();
  const auto source = find_target("cuda")->make()->print(one.program, *kernels, {});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_NE(source->find("ke_copy_16_if"), std::string::npos) << one.name;
  EXPECT_EQ(source->find("imageAt") != std::string::npos, packs) << one.name;
}

TEST(CudaGathers, ConvolutionsOfEveryKindAreRight) {
  std::vector<ConformanceCase> cases;
  const auto add = [&](const Convolution& c, int64_t terms) {
    for (ConformanceCase& one : on_tensor_cores(c, terms)) {
      expect_gathers(one, true);
      cases.push_back(std::move(one));
    }
  };
  add({.name = "plain"}, 3);
  add({.name = "one term", .channels = 24}, 1);
  add({.name = "few channels", .channels = 3, .places = {20, 21}, .kernel = 5, .padding = 2}, 3);
  add({.name = "odd channels", .channels = 13, .outs = 140}, 1);
  add({.name = "many channels", .batch = 1, .channels = 72, .places = {12, 12}}, 3);
  add({.name = "strided", .places = {17, 19}, .kernel = 4, .stride = 2}, 3);
  add({.name = "dilated", .places = {15, 14}, .padding = 2, .dilation = 2}, 3);
  add({.name = "unpadded", .padding = 0}, 3);
  add({.name = "groups", .groups = 3, .channels = 16, .outs = 6}, 3);
  add({.name = "along a line", .channels = 16, .places = {300}, .kernel = 7, .padding = 3}, 3);
  add({.name = "in space", .batch = 1, .places = {5, 6, 7}}, 3);
  add({.name = "transposed", .kernel = 4, .stride = 2, .transposed = true}, 3);
  add({.name = "channels last", .strides = " strides [720, 1, 80, 8]"}, 3);
  add({.name = "halves", .channels = 16, .type = "float16"}, 1);
  expect_emulated(cases);
}

TEST(CudaGathers, HalvesAreTakenFromWhereTheyLie) {
  std::vector<ConformanceCase> cases;
  for (const char* type : {"float16", "bfloat16"}) {
    append(
        cases,
        on_tensor_cores(
            {.name = type, .channels = 16, .type = type, .strides = " strides [1440, 1, 160, 16]"},
            1));
    append(cases, scheduled("product",
                            fmt::format(R"(tensor %0 x: {0}[130, 328] input
tensor %1 w: {0}[140, 328] input
tensor %2 y: float32[130, 140] output
inputs %0, %1
)"
                                        "stage %2[i=130, j=140] = sum[k=328] in "
                                        "float32: mul(cast(float32, load %0[i0, i2]), "
                                        "cast(float32, load %1[i1, i2]))  # mm\n"
                                        "outputs %2\n",
                                        type),
                            {{{"tensor_core", 1}}}));
  }
  for (const ConformanceCase& one : cases) expect_gathers(one, false);
  expect_emulated(cases);
}

// The second image has no parts, the first has.
TEST(CudaGathers, ImagesWithoutPartsAreRepaired) {
  std::vector<ConformanceCase> cases;
  for (const float unusual : {__builtin_inff(), __builtin_nanf(""), 1e30f}) {
    append(cases, on_tensor_cores({.name = fmt::format("with {}", unusual)}, 3));
    std::memcpy(cases.back().inputs[0].data() + 4 * (8 * 90 + 100), &unusual, 4);
  }
  expect_emulated(cases);
}

// Each image has its own magnitude, and so has each output channel.
TEST(CudaGathers, ImagesAreScaled) {
  std::vector<ConformanceCase> cases = on_tensor_cores({.name = "scaled"}, 3);
  for (int operand = 0; operand < 2; ++operand) {
    std::vector<std::byte>& bytes = cases[0].inputs[static_cast<size_t>(operand)];
    const size_t row = operand == 0 ? 8 * 90 : 8 * 9;
    for (size_t i = 0; i < bytes.size() / 4; ++i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      value = std::ldexp(std::fabs(value), static_cast<int>(i / row) * 12 - 20);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    }
  }
  cases[0].relative = 1e-6;
  cases[0].of_largest = 0;
  expect_emulated(cases);
}

}  // namespace
}  // namespace ke::cuda
