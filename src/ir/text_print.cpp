// SPDX-License-Identifier: Apache-2.0
//
// The text form of a program: one line a tensor and one a stage, for people, goldens and digests.
//
//   tensor %0 x: float32[16, 64] input
//   tensor %1 w: float32[64, 8] strides [1, 64] input
//   tensor %2 y: float32[16, 8] output
//   inputs %0, %1
//   stage %2[m=16, n=8] = sum[k=64] in float32: mul(load %0[i0, i2], load %1[i2, i1])  # aten.mm
//   outputs %2
//
// A scan names the axis along which it runs: "stage %2[m=16, n=8] = scan sum[n] in float32: …".
#include <fmt/format.h>

#include <cmath>

#include "ir/program.hpp"

namespace ke::ir {
namespace {

template <class Items, class Printer>
std::string joined(const Items& items, const Printer& printer) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + printer(item);
  return text;
}

std::string print_ids(const std::vector<TensorId>& ids) {
  return joined(ids, [](TensorId id) { return fmt::format("%{}", id.index); });
}

std::string print_axes(const std::vector<Axis>& axes) {
  return joined(axes, [](const Axis& a) { return fmt::format("{}={}", a.name, a.extent); });
}

std::string print_numbers(const std::vector<int64_t>& numbers) {
  return joined(numbers, [](int64_t number) { return fmt::format("{}", number); });
}

std::string print_value(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

bool is_contiguous(const Tensor& tensor) {
  return tensor.strides == contiguous_strides(tensor.shape);
}

std::string print_tensor(const Tensor& tensor, size_t index) {
  std::string text = fmt::format("tensor %{} {}: {}[{}]", index, tensor.name,
                                 enum_name(tensor.dtype), print_numbers(tensor.shape));
  if (!is_contiguous(tensor)) text += fmt::format(" strides [{}]", print_numbers(tensor.strides));
  text += fmt::format(" {}", enum_name(tensor.role));
  if (tensor.role == Role::constant) {
    text += fmt::format(" {{{}}}", joined(tensor.values, print_value));
  }
  return text + "\n";
}

std::string print_stage(const Stage& stage) {
  std::string text =
      fmt::format("stage %{}[{}] = {}{}", stage.output.index, print_axes(stage.parallel),
                  stage.is_scan() ? "scan " : "",
                  stage.is_map() ? "map" : enum_name(stage.reduce));
  if (stage.is_scan()) {
    const auto at = static_cast<size_t>(stage.scan);
    text += fmt::format("[{}]", at < stage.parallel.size() ? stage.parallel[at].name : "missing");
  } else if (!stage.is_map()) {
    text += fmt::format("[{}]", print_axes(stage.reduction));
  }
  if (!stage.is_map() || stage.accumulator != DType::float32) {
    text += fmt::format(" in {}", enum_name(stage.accumulator));
  }
  text += fmt::format(": {}", stage.body ? print(*stage.body) : "missing");
  if (!stage.origin.empty()) text += fmt::format("  # {}", stage.origin);
  return text + "\n";
}

}  // namespace

std::string print(const Program& program) {
  std::string text;
  for (size_t i = 0; i < program.tensors.size(); ++i) text += print_tensor(program.tensors[i], i);
  text += fmt::format("inputs {}\n", print_ids(program.inputs));
  for (const Stage& stage : program.stages) text += print_stage(stage);
  return text + fmt::format("outputs {}\n", print_ids(program.outputs));
}

}  // namespace ke::ir
