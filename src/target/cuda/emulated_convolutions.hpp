// SPDX-License-Identifier: Apache-2.0
//
// For tests: programs of convolutions, and their cases on tensor cores.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "target/cuda/emulated_cases.hpp"

namespace ke::cuda {

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

inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// One index of the input, and what must hold for it.
inline std::pair<std::string, std::string> place(const Convolution& c, int64_t extent, size_t out,
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
inline std::string text_of(const Convolution& c) {
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

inline std::vector<ConformanceCase> on_tensor_cores(const Convolution& c, int64_t terms) {
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

}  // namespace ke::cuda
