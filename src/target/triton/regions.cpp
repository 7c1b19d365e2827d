// SPDX-License-Identifier: Apache-2.0
//
// Values carry a wave: a library call's results are one wave later than its operands, a region's
// results are in the wave of its operands. Nodes of one wave that feed each other form a region; a
// path that leaves it through a library call comes back in a later wave, so regions never wait for
// each other. Views of what is no region's are everybody's: the library calls them, and regions see
// through them by index arithmetic.
#include "target/triton/regions.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "ir/lower/lower.hpp"
#include "target/triton/kernel.hpp"

namespace ke::triton {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

constexpr std::array<std::string_view, 14> kViews = {
    "view",      "_unsafe_view", "reshape", "permute", "transpose", "t",      "squeeze",
    "unsqueeze", "expand",       "slice",   "select",  "alias",     "detach", "lift_fresh_copy"};

constexpr std::array<std::string_view, 84> kPointwise = {"_to_copy",
                                                         "abs",
                                                         "acos",
                                                         "acosh",
                                                         "add",
                                                         "asin",
                                                         "asinh",
                                                         "atan",
                                                         "atan2",
                                                         "atanh",
                                                         "bitwise_and",
                                                         "bitwise_not",
                                                         "bitwise_or",
                                                         "bitwise_xor",
                                                         "cat",
                                                         "ceil",
                                                         "clamp",
                                                         "clamp_max",
                                                         "clamp_min",
                                                         "clone",
                                                         "constant_pad_nd",
                                                         "copy",
                                                         "copysign",
                                                         "cos",
                                                         "cosh",
                                                         "div",
                                                         "elu",
                                                         "eq",
                                                         "erf",
                                                         "erfc",
                                                         "exp",
                                                         "exp2",
                                                         "expm1",
                                                         "fill",
                                                         "flip",
                                                         "floor",
                                                         "floor_divide",
                                                         "fmod",
                                                         "full",
                                                         "full_like",
                                                         "ge",
                                                         "gelu",
                                                         "gt",
                                                         "hardtanh",
                                                         "isinf",
                                                         "isnan",
                                                         "le",
                                                         "leaky_relu",
                                                         "log",
                                                         "log10",
                                                         "log1p",
                                                         "log2",
                                                         "logical_and",
                                                         "logical_not",
                                                         "logical_or",
                                                         "logical_xor",
                                                         "lt",
                                                         "masked_fill",
                                                         "maximum",
                                                         "minimum",
                                                         "mul",
                                                         "ne",
                                                         "neg",
                                                         "ones_like",
                                                         "pow",
                                                         "reciprocal",
                                                         "relu",
                                                         "remainder",
                                                         "round",
                                                         "rsqrt",
                                                         "scalar_tensor",
                                                         "sigmoid",
                                                         "sign",
                                                         "sin",
                                                         "sinh",
                                                         "sqrt",
                                                         "square",
                                                         "sub",
                                                         "tan",
                                                         "tanh",
                                                         "trunc",
                                                         "where",
                                                         "zeros_like",
                                                         "arange"};

constexpr std::array<std::string_view, 15> kReducing = {"_softmax",
                                                        "_log_softmax",
                                                        "amax",
                                                        "amin",
                                                        "any",
                                                        "all",
                                                        "max",
                                                        "mean",
                                                        "min",
                                                        "native_group_norm",
                                                        "native_layer_norm",
                                                        "prod",
                                                        "sum",
                                                        "var",
                                                        "var_mean"};

constexpr std::array<std::string_view, 2> kScanning = {"cumsum", "cumprod"};

template <size_t n>
bool is_in(const std::array<std::string_view, n>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_view(const Node& node) { return is_in(kViews, ir::operation_of(node)); }

bool may_fuse(const Node& node) {
  const std::string_view op = ir::operation_of(node);
  return is_in(kViews, op) || is_in(kPointwise, op) || is_in(kReducing, op) ||
         is_in(kScanning, op);
}

class Partitioner {
 public:
  explicit Partitioner(const Graph& graph)
      : graph_(graph),
        live_(live_nodes(graph)),
        maker_(graph.values.size(), -1),
        group_(graph.nodes.size()) {
    std::iota(group_.begin(), group_.end(), 0);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId id : graph.nodes[n].results) at(maker_, id) = static_cast<int>(n);
    }
  }

  ModelPlan run() {
    classify();
    std::map<int, std::vector<int>> groups;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (live_[n] && fused_[n]) groups[find(static_cast<int>(n))].push_back(static_cast<int>(n));
    }
    ModelPlan plan;
    for (const auto& [root, nodes] : groups) {
      if (auto region = region_of(nodes)) plan.regions.push_back(std::move(*region));
    }
    return plan;
  }

 private:
  template <class T>
  static T& at(std::vector<T>& list, ValueId id) {
    return list[static_cast<size_t>(id.index)];
  }

  // Waves, free views, and which nodes feed each other.
  void classify() {
    std::vector<int> wave(graph_.values.size(), 0);
    fused_.assign(graph_.nodes.size(), false);
    free_.assign(graph_.nodes.size(), false);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!live_[n]) continue;
      int latest = 0;
      for (const ValueId id : ir::operands_of(node)) latest = std::max(latest, at(wave, id));
      free_[n] = is_view(node) && !is_fused_value(ir::operands_of(node).front());
      fused_[n] = !free_[n] && may_fuse(node) && is_known(node);
      for (const ValueId id : node.results) {
        at(wave, id) = latest + (fused_[n] || free_[n] ? 0 : 1);
      }
      for (const ValueId id : ir::operands_of(node)) {
        if (fused_[n] && is_fused_value(id) && at(wave, id) == latest) {
          group_[static_cast<size_t>(find(static_cast<int>(n)))] = find(at(maker_, id));
        }
      }
    }
  }

  bool is_fused_value(ValueId id) {
    const int maker = at(maker_, id);
    return maker >= 0 && fused_[static_cast<size_t>(maker)];
  }

  static bool is_known(const Node& node) {
    static const std::vector<std::string_view> known = ir::lowered_operations();
    return std::binary_search(known.begin(), known.end(), node.op);
  }

  int find(int n) {
    while (group_[static_cast<size_t>(n)] != n) n = group_[static_cast<size_t>(n)];
    return n;
  }

  // The nodes with the free views that they look through.
  std::vector<int> with_views(const std::vector<int>& nodes) {
    std::set<int> all(nodes.begin(), nodes.end());
    std::vector<int> left = nodes;
    while (!left.empty()) {
      const Node& node = graph_.nodes[static_cast<size_t>(left.back())];
      left.pop_back();
      for (const ValueId id : ir::operands_of(node)) {
        const int maker = at(maker_, id);
        if (maker >= 0 && free_[static_cast<size_t>(maker)] && all.insert(maker).second) {
          left.push_back(maker);
        }
      }
    }
    return {all.begin(), all.end()};
  }

  std::optional<Region> region_of(const std::vector<int>& nodes) {
    Region region;
    region.nodes = with_views(nodes);
    const std::set<int> own(nodes.begin(), nodes.end());
    std::set<int> inside, made;
    for (const int n : region.nodes) {
      for (const ValueId id : graph_.nodes[static_cast<size_t>(n)].results) inside.insert(id.index);
    }
    Graph part{.values = graph_.values, .inputs = {}, .nodes = {}, .outputs = {}};
    for (const int n : region.nodes) {
      const Node& node = graph_.nodes[static_cast<size_t>(n)];
      part.nodes.push_back(node);
      for (const ValueId id : ir::operands_of(node)) {
        const bool outside = !inside.contains(id.index) && !value_of(graph_, id).is_constant;
        if (outside && made.insert(id.index).second) region.inputs.push_back(id);
      }
    }
    region.outputs = outputs_of(own);
    for (const ValueId id : region.inputs) part.inputs.push_back({id, ir::InputKind::argument});
    for (const ValueId id : region.inputs) make_contiguous(part, id);
    part.outputs = region.outputs;
    if (region.outputs.empty()) return std::nullopt;
    Result<ir::Program> program = ir::lower(part);
    if (!program) return std::nullopt;
    region.program = std::move(*program);
    auto kernels = ir::realize(region.program, ir::fuse_greedily(region.program));
    if (!kernels) return std::nullopt;
    region.kernels = std::move(*kernels);
    for (const ir::FusedKernel& kernel : region.kernels) {
      if (!print_kernel(region.program, kernel, kernel.name)) return std::nullopt;
    }
    return region;
  }

  // What the library made may lie in memory in any way; it is brought into this one.
  void make_contiguous(Graph& part, ValueId id) {
    ir::Value& value = part.values[static_cast<size_t>(id.index)];
    if (at(maker_, id) >= 0) value.strides = ir::contiguous_strides(value.shape);
  }

  // In order of the nodes: what others read, or the graph returns.
  std::vector<ValueId> outputs_of(const std::set<int>& own) {
    std::set<int> read;
    for (const ValueId id : graph_.outputs) read.insert(id.index);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!live_[n] || own.contains(static_cast<int>(n))) continue;
      for (const ValueId id : ir::operands_of(graph_.nodes[n])) read.insert(id.index);
    }
    std::vector<ValueId> outputs;
    for (const int n : own) {
      for (const ValueId id : graph_.nodes[static_cast<size_t>(n)].results) {
        if (read.contains(id.index)) outputs.push_back(id);
      }
    }
    return outputs;
  }

  const Graph& graph_;
  std::vector<bool> live_, fused_, free_;
  std::vector<int> maker_;  // of a value: its node, or -1
  std::vector<int> group_;  // of a node: another one of its region
};

// Steps in an order in which everything is there before it is read.
std::vector<Step> ordered(const Graph& graph, const std::vector<Region>& regions) {
  std::vector<int> region_of(graph.nodes.size(), -1);
  std::vector<bool> ready(graph.values.size(), false), done(regions.size(), false);
  const std::vector<bool> live = live_nodes(graph);
  std::set<int> made_by_regions;
  for (size_t r = 0; r < regions.size(); ++r) {
    for (const ValueId id : regions[r].outputs) made_by_regions.insert(id.index);
  }
  for (const ir::GraphInput& input : graph.inputs) {
    ready[static_cast<size_t>(input.value.index)] = true;
  }
  const auto is_ready = [&](ValueId id) {
    return ready[static_cast<size_t>(id.index)] || ir::value_of(graph, id).is_constant;
  };
  // What only regions look at is not computed outside of them.
  std::vector<bool> needed(graph.values.size(), false);
  for (const ValueId id : graph.outputs) needed[static_cast<size_t>(id.index)] = true;
  for (const Region& region : regions) {
    for (const ValueId id : region.inputs) needed[static_cast<size_t>(id.index)] = true;
  }
  std::vector<bool> called(graph.nodes.size(), false);
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    const auto is_needed = [&](ValueId id) {
      return needed[static_cast<size_t>(id.index)] && !made_by_regions.contains(id.index);
    };
    called[n] = live[n] && std::any_of(node.results.begin(), node.results.end(), is_needed);
    if (!called[n]) continue;
    for (const ValueId id : ir::operands_of(node)) needed[static_cast<size_t>(id.index)] = true;
  }
  std::vector<Step> steps;
  const auto run_regions = [&] {
    for (bool again = true; again;) {
      again = false;
      for (size_t r = 0; r < regions.size(); ++r) {
        const Region& region = regions[r];
        if (done[r] || !std::all_of(region.inputs.begin(), region.inputs.end(), is_ready)) continue;
        done[r] = again = true;
        steps.push_back({.region = static_cast<int>(r)});
        for (const ValueId id : region.outputs) ready[static_cast<size_t>(id.index)] = true;
      }
    }
  };
  run_regions();
  for (bool again = true; again;) {
    again = false;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (!called[n]) continue;
      const std::vector<ValueId> operands = ir::operands_of(graph.nodes[n]);
      if (!std::all_of(operands.begin(), operands.end(), is_ready)) continue;
      called[n] = false;
      again = true;
      steps.push_back({.node = static_cast<int>(n)});
      for (const ValueId id : graph.nodes[n].results) ready[static_cast<size_t>(id.index)] = true;
      run_regions();
    }
  }
  return steps;
}

}  // namespace

std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false), read(graph.values.size(), false);
  for (const ValueId id : graph.outputs) read[static_cast<size_t>(id.index)] = true;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    live[n] = std::any_of(node.results.begin(), node.results.end(),
                          [&](ValueId id) { return read[static_cast<size_t>(id.index)]; });
    if (!live[n]) continue;
    for (const ValueId id : ir::operands_of(node)) read[static_cast<size_t>(id.index)] = true;
  }
  return live;
}

ModelPlan partition(const Graph& graph) {
  ModelPlan plan = Partitioner(graph).run();
  plan.steps = ordered(graph, plan.regions);
  return plan;
}

ModelPlan without(const Graph& graph, const ModelPlan& plan, const std::vector<bool>& kept) {
  ModelPlan changed;
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    if (kept[r]) changed.regions.push_back(plan.regions[r]);
  }
  changed.steps = ordered(graph, changed.regions);
  return changed;
}

}  // namespace ke::triton
