// SPDX-License-Identifier: Apache-2.0
//
// From every product forward: its result is followed through operations that are linear in it, up
// to where something else (a sink) uses it. If all sinks use sums over an axis that belongs to one
// operand, the product folds: each sink's sums are computed from that operand's sums. Whatever is
// not known to be linear is a sink, so an unknown operation never makes a problem foldable.
#include "ir/foldable.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "ir/fold_cost.hpp"
#include "ir/fold_spread.hpp"
#include "ir/needed.hpp"

namespace ke::ir {
namespace {

enum class Step : uint8_t { keep, reshape, permute, transpose, expand, add, scale, sum, pool };

struct Linear {
  std::string_view name;
  Step step;
};

// Linear in the operand that they move, scale or sum; `add` in each of two.
constexpr std::array kLinear = {
    Linear{"alias", Step::keep},
    Linear{"clone", Step::keep},
    Linear{"detach", Step::keep},
    Linear{"lift_fresh_copy", Step::keep},
    Linear{"neg", Step::keep},
    Linear{"_to_copy", Step::keep},
    Linear{"reshape", Step::reshape},
    Linear{"squeeze", Step::reshape},
    Linear{"unsqueeze", Step::reshape},
    Linear{"_unsafe_view", Step::reshape},
    Linear{"view", Step::reshape},
    Linear{"permute", Step::permute},
    Linear{"t", Step::transpose},
    Linear{"transpose", Step::transpose},
    Linear{"expand", Step::expand},
    Linear{"add", Step::add},
    Linear{"sub", Step::add},
    Linear{"rsub", Step::add},
    Linear{"mul", Step::scale},
    Linear{"div", Step::scale},
    Linear{"mean", Step::sum},
    Linear{"sum", Step::sum},
    Linear{"avg_pool1d", Step::pool},
    Linear{"avg_pool2d", Step::pool},
    Linear{"avg_pool3d", Step::pool},
    Linear{"adaptive_avg_pool1d", Step::pool},
    Linear{"_adaptive_avg_pool2d", Step::pool},
    Linear{"_adaptive_avg_pool3d", Step::pool},
};

const Linear* linear(const Node& node) {
  // A mode of rounding makes a division a step function.
  const bool rounds = node.op.ends_with("_mode");
  const auto* found = std::find_if(kLinear.begin(), kLinear.end(), [&](const Linear& entry) {
    return entry.name == operation_of(node);
  });
  return rounds || found == kLinear.end() ? nullptr : found;
}

// The numbers of a list, or a lone one; absent and None are an empty list.
std::optional<std::vector<int64_t>> numbers(const Node& node, size_t position) {
  std::vector<int64_t> found;
  if (position >= node.args.size() || node.args[position].is_none()) return found;
  const Arg& arg = node.args[position];
  if (const auto* number = std::get_if<int64_t>(&arg.data)) return std::vector{*number};
  const auto* list = std::get_if<std::vector<Arg>>(&arg.data);
  if (!list) return std::nullopt;
  for (const Arg& item : *list) {
    const auto* number = std::get_if<int64_t>(&item.data);
    if (!number) return std::nullopt;
    found.push_back(*number);
  }
  return found;
}

std::optional<Spread> transposed(const Node& node, const Spread& in) {
  const size_t rank = in.layout.size();
  const auto first = node.args.size() > 2 ? numbers(node, 1) : std::vector<int64_t>{0};
  const auto second = node.args.size() > 2 ? numbers(node, 2) : std::vector<int64_t>{1};
  if (!first || !second || first->size() != 1 || second->size() != 1) return std::nullopt;
  std::vector<int64_t> order;
  for (size_t d = 0; d < rank; ++d) order.push_back(static_cast<int64_t>(d));
  const auto at = [&](int64_t dim) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; };
  const int64_t a = at(first->front()), b = at(second->front());
  if (std::min(a, b) < 0 || std::max(a, b) >= static_cast<int64_t>(rank)) return std::nullopt;
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return permuted(in, order);
}

std::optional<Spread> scaled(const Graph& graph, const Node& node, size_t position,
                             const Spread& in, const std::vector<int64_t>& shape) {
  const std::vector<ValueId> operands = operands_of(node);
  if (operation_of(node) == "div" && position != 0) return std::nullopt;  // a divisor
  const std::optional<Spread> out = broadcast(in, shape);
  if (!out || operands.size() == 1) return out;
  if (operands.size() != 2) return std::nullopt;
  return weighted_by(*out, value_of(graph, operands[1 - position]).shape);
}

std::optional<Spread> summed_by(const Node& node, int index, const Spread& in, size_t out_rank) {
  std::optional<std::vector<int64_t>> dims = numbers(node, 1);
  if (!dims) return std::nullopt;
  const bool all = dims->empty();
  for (size_t d = 0; all && d < in.layout.size(); ++d) dims->push_back(static_cast<int64_t>(d));
  return summed(in, *dims, out_rank == in.layout.size(), index);
}

// How the result of a node spreads that has a value of the spread `in` at this position.
std::optional<Spread> after(const Graph& graph, int index, size_t position, const Spread& in) {
  const Node& node = graph.nodes[static_cast<size_t>(index)];
  const Linear* entry = linear(node);
  if (!entry || node.results.size() != 1) return std::nullopt;
  const Value& result = value_of(graph, node.results.front());
  if (!is_floating(result.dtype)) return std::nullopt;
  if (position != 0 && entry->step != Step::add && entry->step != Step::scale) return std::nullopt;
  std::optional<Spread> out;
  switch (entry->step) {
    case Step::keep:
      out = in;
      break;
    case Step::reshape:
      out = reshaped(in, result.shape);
      break;
    case Step::permute:
      if (const auto order = numbers(node, 1)) out = permuted(in, *order);
      break;
    case Step::transpose:
      out = transposed(node, in);
      break;
    case Step::expand:
    case Step::add:
      out = broadcast(in, result.shape);
      break;
    case Step::scale:
      out = scaled(graph, node, position, in, result.shape);
      break;
    case Step::sum:
      out = summed_by(node, index, in, result.shape.size());
      break;
    case Step::pool:
      out = pooled(in, result.shape, static_cast<size_t>(entry->name[entry->name.size() - 2] - '0'),
                   index);
      break;
  }
  // Arguments that do not fit the declared shape are not understood here.
  return out && out->shape() == result.shape ? out : std::nullopt;
}

// Of each value, the last node that reads it.
std::vector<size_t> last_uses(const Graph& graph) {
  std::vector<size_t> last(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : operands_of(graph.nodes[i])) last[static_cast<size_t>(id.index)] = i;
  }
  return last;
}

// What becomes of one product's result.
class Flow {
 public:
  Flow(const Graph& graph, const Needed& needed, const std::vector<size_t>& last_use, size_t start)
      : graph_(graph), last_use_(last_use) {
    const ValueId result = graph.nodes[start].results.front();
    follow(result, Spread::of_result(value_of(graph, result).shape));
    for (size_t i = start + 1; i <= end_; ++i) {
      if (needed.nodes[i] && !needed.constant[i]) visit(i);
    }
    for (const ValueId output : graph.outputs) {
      const auto found = spreads_.find(output.index);
      if (found != spreads_.end()) sink(found->second);
    }
  }

  const std::vector<Spread>& sinks() const { return sinks_; }
  const std::vector<size_t>& passed() const { return passed_; }  // nodes between product and sinks

 private:
  struct Use {
    const Spread* in;
    std::optional<Spread> out;
  };

  void visit(size_t index) {
    const Node& node = graph_.nodes[index];
    std::vector<const Spread*> read;  // also in lists and by keyword
    for (const ValueId id : operands_of(node)) {
      const auto found = spreads_.find(id.index);
      if (found != spreads_.end()) read.push_back(&found->second);
    }
    std::vector<Use> uses;
    for (size_t position = 0; position < node.args.size(); ++position) {
      const auto* id = std::get_if<ValueId>(&node.args[position].data);
      const auto found = id ? spreads_.find(id->index) : spreads_.end();
      if (found == spreads_.end()) continue;
      uses.push_back(
          {&found->second, after(graph_, static_cast<int>(index), position, found->second)});
    }
    const Linear* entry = linear(node);
    const bool sums_its_uses = entry && entry->step == Step::add;
    if (uses.size() == read.size() && (uses.size() == 1 || sums_its_uses)) {
      pass_on(index, uses);
    } else {
      for (const Spread* spread : read) sink(*spread);
    }
  }

  // The sum of two spreads follows the less gathered one; the other then must be known by itself.
  void pass_on(size_t index, const std::vector<Use>& uses) {
    const Use* followed = nullptr;
    for (const Use& use : uses) {
      if (!use.out) continue;
      if (!followed || use.out->results() > followed->out->results()) followed = &use;
    }
    for (const Use& use : uses) {
      if (!followed || (&use != followed && use.out != followed->out)) sink(*use.in);
    }
    if (!followed) return;
    passed_.push_back(index);
    follow(graph_.nodes[index].results.front(), *followed->out);
  }

  void follow(ValueId id, const Spread& spread) {
    spreads_[id.index] = spread;
    end_ = std::max(end_, last_use_[static_cast<size_t>(id.index)]);
  }

  void sink(const Spread& spread) {
    const bool known = std::any_of(sinks_.begin(), sinks_.end(), [&](const Spread& other) {
      return other.kept == spread.kept && other.summed_by == spread.summed_by;
    });
    if (!known) sinks_.push_back(spread);
  }

  const Graph& graph_;
  const std::vector<size_t>& last_use_;
  size_t end_ = 0;                 // the last node that may read one of the spreads
  std::map<int, Spread> spreads_;  // of values, by index
  std::vector<Spread> sinks_;
  std::vector<size_t> passed_;
};

}  // namespace

int64_t spared_flops(const Graph& graph) {
  const Needed needed = needed_by_outputs(graph);
  const std::vector<size_t> last_use = last_uses(graph);
  double total = 0, spared = 0;
  std::vector<double> left(graph.nodes.size(), -1);  // of the work after a product; -1: all
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto written = static_cast<double>(node.flops);
    total += written;
    if (!needed.nodes[i]) {
      spared += written;
      continue;
    }
    const std::optional<Product> product = product_of(graph, node);
    if (!product) continue;
    const Flow flow(graph, needed, last_use, i);
    double folded = 0, results = 0;
    for (const Spread& sink : flow.sinks()) {
      folded += sink.summed_by < 0 ? written : folded_flops(*product, sink.kept);
      results += sink.results();
    }
    const bool folds = folded < written;
    if (folds) spared += written - folded;
    const auto all = static_cast<double>(element_count(value_of(graph, node.results.front())));
    const double share = folds ? std::min(1.0, results / all) : 1;
    for (const size_t passed : flow.passed()) left[passed] = std::max(left[passed], share);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (left[i] >= 0) spared += static_cast<double>(graph.nodes[i].flops) * (1 - left[i]);
  }
  return static_cast<int64_t>(std::min(std::round(spared), total));
}

}  // namespace ke::ir
