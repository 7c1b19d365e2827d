// SPDX-License-Identifier: Apache-2.0
//
// Level 1 of the synthesizer: the exported graph of core ATen operations, static shapes, SSA.
// The oracle writes it as JSON (schema in graph.cpp); lowering reads it. Nothing here is executed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "ir/dtype.hpp"

namespace ke::ir {

// Index into Graph::values.
struct ValueId {
  int index = -1;
  auto operator<=>(const ValueId&) const = default;
};

enum class InputKind : uint8_t { argument, parameter, buffer, random };

struct Value {
  std::string name;
  DType dtype = DType::float32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;   // in elements
  std::vector<double> constant;   // set when the value is a small literal tensor (row-major)
  bool is_constant = false;
};

// One argument of an ATen call: a value, a scalar, a list, a dtype name or None.
struct Arg {
  std::variant<std::monostate, ValueId, bool, int64_t, double, std::string, std::vector<Arg>> data;

  bool is_none() const { return std::holds_alternative<std::monostate>(data); }
};

struct NamedArg {
  std::string name;
  Arg value;
};

// One ATen call. Multi-output operations list every result, in order; an unused one may be absent
// from later use but is still declared.
struct Node {
  std::string op;  // "aten.add.Tensor"
  std::vector<Arg> args;
  std::vector<NamedArg> kwargs;
  std::vector<ValueId> results;
  int64_t flops = 0;  // as written, a multiply-add counted as two; 0: unknown or none
};

struct GraphInput {
  ValueId value;
  InputKind kind = InputKind::argument;
};

struct Graph {
  std::vector<Value> values;
  std::vector<GraphInput> inputs;  // in the kernel contract's order
  std::vector<Node> nodes;         // topological
  std::vector<ValueId> outputs;
};

Result<Graph> graph_from_json(const Json& json);
Json encode(const Graph& graph);  // what graph_from_json reads
std::string print(const Graph& graph);  // one line a node, for people and goldens

const Value& value_of(const Graph& graph, ValueId id);
int64_t element_count(const Value& value);
// Every tensor that the node reads, in order, those in lists and keywords among them.
std::vector<ValueId> operands_of(const Node& node);
std::string_view operation_of(const Node& node);  // "add" of "aten.add.Tensor"

}  // namespace ke::ir
