// SPDX-License-Identifier: Apache-2.0
//
// Forward, values are traced to the one whose elements they repeat, which shows what is constant;
// backward from the outputs, operands are marked, except those of constants.
#include "ir/needed.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace ke::ir {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Keeps all elements in their row-major order; a reduction does so where it reduces single ones.
bool repeats_its_operand(const Graph& graph, const Node& node) {
  const std::string_view name = operation_of(node);
  const bool copies = is_one_of(name, {"alias", "clone", "detach", "lift_fresh_copy", "reshape",
                                       "squeeze", "_unsafe_view", "unsqueeze", "view"});
  const bool reduces =
      is_one_of(name, {"amax", "amin", "logsumexp", "max", "mean", "min", "prod", "sum"});
  if (node.args.empty() || node.results.empty() || operands_of(node).size() != 1) return false;
  const auto* operand = std::get_if<ValueId>(&node.args.front().data);
  if (!operand || (!copies && !reduces)) return false;
  const Value& from = value_of(graph, *operand);
  const Value& to = value_of(graph, node.results.front());
  return from.dtype == to.dtype && element_count(from) == element_count(to);
}

class Origins {
 public:
  explicit Origins(const Graph& graph) : graph_(graph), origin_(graph.values.size()) {
    for (size_t i = 0; i < origin_.size(); ++i) origin_[i] = static_cast<int>(i);
  }

  void follow(const Node& node) {
    if (!repeats_its_operand(graph_, node)) return;
    const ValueId operand = std::get<ValueId>(node.args.front().data);
    origin_[static_cast<size_t>(node.results.front().index)] = of(operand);
  }

  bool is_constant(const Node& node) const {
    const std::string_view name = operation_of(node);
    if (is_one_of(name, {"_softmax", "_log_softmax"})) return normalizes_single_elements(node);
    return name == "sub" && node.kwargs.empty() && subtracts_itself(node);
  }

 private:
  int of(ValueId id) const { return origin_[static_cast<size_t>(id.index)]; }

  bool normalizes_single_elements(const Node& node) const {
    if (node.args.size() < 2) return false;
    const auto* operand = std::get_if<ValueId>(&node.args[0].data);
    const auto* dim = std::get_if<int64_t>(&node.args[1].data);
    if (!operand || !dim) return false;
    const std::vector<int64_t>& shape = value_of(graph_, *operand).shape;
    const int64_t rank = static_cast<int64_t>(shape.size());
    const int64_t at = *dim < 0 ? *dim + rank : *dim;
    return at >= 0 && at < rank && shape[static_cast<size_t>(at)] == 1;
  }

  bool subtracts_itself(const Node& node) const {
    const std::vector<ValueId> operands = operands_of(node);
    if (operands.size() != 2 || node.args.size() != 2 || of(operands[0]) != of(operands[1])) {
      return false;
    }
    // As many results as elements: broadcasting pairs each element with itself.
    const int64_t count = element_count(value_of(graph_, node.results.front()));
    return std::all_of(operands.begin(), operands.end(), [&](ValueId id) {
      return element_count(value_of(graph_, id)) == count;
    });
  }

  const Graph& graph_;
  std::vector<int> origin_;
};

}  // namespace

Needed needed_by_outputs(const Graph& graph) {
  Needed needed{std::vector<bool>(graph.nodes.size(), false),
                std::vector<bool>(graph.values.size(), false),
                std::vector<bool>(graph.nodes.size(), false)};
  Origins origins(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    origins.follow(graph.nodes[i]);
    needed.constant[i] = origins.is_constant(graph.nodes[i]);
  }
  for (const ValueId output : graph.outputs) {
    needed.values[static_cast<size_t>(output.index)] = true;
  }
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    needed.nodes[i] = std::any_of(node.results.begin(), node.results.end(), [&](ValueId id) {
      return needed.values[static_cast<size_t>(id.index)];
    });
    if (!needed.nodes[i] || needed.constant[i]) continue;
    for (const ValueId id : operands_of(node)) {
      needed.values[static_cast<size_t>(id.index)] = true;
    }
  }
  return needed;
}

}  // namespace ke::ir
