// SPDX-License-Identifier: Apache-2.0
//
// What everybody may know about a problem. Expected values are not part of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "ir/graph.hpp"

namespace ke {

struct TensorSpec {
  std::string name;  // "x", "gemm.weight"
  ir::DType dtype = ir::DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  ir::InputKind kind = ir::InputKind::argument;

  int64_t elements() const;
  int64_t bytes() const;  // of the dense storage
  bool operator==(const TensorSpec&) const = default;
};

// What arithmetic counts as right (DESIGN D3).
enum class Precision : uint8_t { strict, ieee, tf32, kernelbench };

struct Problem {
  std::string name;                 // path below the suite root, without .py: "level1/19_ReLU"
  std::string path;                 // the file
  Digest digest;                    // of file and sidecar
  std::vector<TensorSpec> inputs;   // in the kernel contract's order
  std::vector<TensorSpec> outputs;  // contiguous
  std::optional<ir::Graph> graph;   // absent when the export failed: graph_error says why
  std::string graph_error;
  bool float64_truth = true;       // false: the truth is in the problem's own precision
  int64_t longest_reduction = 1;   // L of the error budget
  int64_t flops = 0;               // of the graph as written (2 a multiply-add); 0 when unknown
  double unit_roundoff = 0x1p-24;  // u of the problem's widest floating type
  std::vector<std::string> flags;  // "random", "foldable"… as found while loading
  int64_t input_bytes() const;
  int64_t output_bytes() const;
};

Json encode(const TensorSpec& spec);
Result<TensorSpec> decode_tensor_spec(const Json& json);

// Without the path, which is another one elsewhere.
Json encode(const Problem& problem);
Result<Problem> decode_problem(const Json& json);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::Precision>{
    "strict", "ieee", "tf32", "kernelbench"};
template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::ir::InputKind>{
    "argument", "parameter", "buffer", "random"};
