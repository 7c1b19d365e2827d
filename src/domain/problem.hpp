// SPDX-License-Identifier: Apache-2.0
//
// What everybody may know about a problem. Expected values are not part of it.
#pragma once

#include <optional>
#include <span>
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

// How PyTorch draws the numbers of an input of the kind `random`: a method of torch.Tensor that
// fills an empty one, and its parameters. "bernoulli_" {0.7}.
struct Draw {
  std::string method;
  std::vector<double> parameters;
  bool operator==(const Draw&) const = default;
};

// What arithmetic counts as right (DESIGN D3).
enum class Precision : uint8_t { strict, ieee, tf32, kernelbench };

// What is asked of calls with the same inputs. bitwise: equal bits. budget: floating outputs may
// differ as long as each of many runs is within the error budget; others are exact in any case.
enum class Determinism : uint8_t { bitwise, budget };

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
  int64_t spared_flops = 0;        // of these, what the least form found does without
  double unit_roundoff = 0x1p-24;  // u of the problem's widest floating type
  std::string libraries;           // the sidecar's library policy; empty: the run's
  std::optional<Determinism> determinism;  // the sidecar's; absent: the run's
  std::vector<std::string> flags;  // "random", "foldable"… as found while loading
  std::vector<std::string> mutated;  // inputs that forward() writes; not part of the JSON form
  std::vector<Draw> draws;         // one an input of the kind `random`, in order
  int32_t shape_case = 0;          // which of case_count; 0: the shapes of get_inputs()
  int32_t case_count = 1;

  int64_t minimal_flops() const { return flops - spared_flops; }
  int64_t input_bytes() const;
  int64_t output_bytes() const;
};

// "x [1, 0], y [3]": the shapes of the arguments.
std::string shapes_of(const Problem& problem);

// Errc::invalid unless these shape cases of one problem differ in shapes, and in nothing else.
Result<void> check_cases(std::span<const Problem* const> cases);

Json encode(const TensorSpec& spec);
Result<TensorSpec> decode_tensor_spec(const Json& json);
Json encode(const Draw& draw);
Result<Draw> decode_draw(const Json& json);

// Without the path, which is another one elsewhere.
Json encode(const Problem& problem);
Result<Problem> decode_problem(const Json& json);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::Precision>{
    "strict", "ieee", "tf32", "kernelbench"};
template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::Determinism>{"bitwise",
                                                                                 "budget"};
template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::ir::InputKind>{
    "argument", "parameter", "buffer", "random"};
