// SPDX-License-Identifier: Apache-2.0
#include "target/triton/compute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "target/triton/launcher.hpp"
#include "target/triton/library_call.hpp"
#include "target/triton/python.hpp"

namespace ke::triton {
namespace {

using ir::Graph;
using ir::ValueId;

class Computer {
 public:
  Computer(const Problem& problem, const ModelPlan& plan, const ComputeOptions& options,
           std::string prefix)
      : problem_(problem),
        graph_(*problem.graph),
        plan_(plan),
        options_(options),
        prefix_(std::move(prefix)),
        name_(graph_.values.size()),
        last_use_(graph_.values.size(), -1) {}

  ComputeText print() {
    name_inputs();
    name_constants();
    find_last_uses();
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.region >= 0) {
        call_region(step.region);
      } else {
        call_library(graph_.nodes[static_cast<size_t>(step.node)]);
      }
      drop(static_cast<int>(s));
    }
    std::vector<std::string> returned;
    for (const ValueId id : graph_.outputs) returned.push_back(use(id));
    const bool one = returned.size() == 1;
    body_ += fmt::format("return {}\n", one ? returned[0] : fmt::format("({})", joined(returned)));
    text_.method = fmt::format("def {}(self, tensors):\n{}", options_.method, indented(body_, 4));
    return std::move(text_);
  }

 private:
  std::string& name(ValueId id) { return name_[static_cast<size_t>(id.index)]; }

  const std::string& use(ValueId id) {
    std::string& held = name(id);
    KE_ASSERT(!held.empty());
    return held;
  }

  // The tensors of the call in the contract's order.
  void name_inputs() {
    std::vector<std::string> names;
    for (const ir::GraphInput& input : graph_.inputs) {
      names.push_back(names_.fresh(ir::value_of(graph_, input.value).name));
      name(input.value) = names.back();
    }
    body_ += fmt::format("{}{} = tensors\n", joined(names), names.size() == 1 ? "," : "");
    device_ = names.front() + ".device";
    device_holder_ = names.front();
  }

  void name_constants() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const ir::Value& value = graph_.values[v];
      if (!value.is_constant) continue;
      const std::string buffer = fmt::format("_{}constant{}", prefix_, text_.constants.size());
      text_.constants.push_back({buffer, &value});
      name_[v] = "self." + buffer;
    }
  }

  std::vector<ValueId> read_by(const Step& step) const {
    if (step.region >= 0) return plan_.regions[static_cast<size_t>(step.region)].inputs;
    return ir::operands_of(graph_.nodes[static_cast<size_t>(step.node)]);
  }

  void find_last_uses() {
    const auto count = static_cast<int>(plan_.steps.size());
    for (int s = 0; s < count; ++s) {
      for (const ValueId id : read_by(plan_.steps[static_cast<size_t>(s)])) {
        last_use_[static_cast<size_t>(id.index)] = s;
      }
    }
    for (const ValueId id : graph_.outputs) last_use_[static_cast<size_t>(id.index)] = count;
  }

  // What is not read any more goes, as it would in eager PyTorch.
  void drop(int step) {
    std::set<std::string> gone;
    for (const ValueId id : read_by(plan_.steps[static_cast<size_t>(step)])) {
      const bool last = last_use_[static_cast<size_t>(id.index)] == step;
      if (last && made_.contains(id.index)) gone.insert(name(id));
    }
    if (!gone.empty()) {
      body_ += fmt::format("del {}\n", joined({gone.begin(), gone.end()}));
    }
  }

  bool is_used(ValueId id) const { return last_use_[static_cast<size_t>(id.index)] >= 0; }

  std::string make(ValueId id) {
    if (!is_used(id)) return "_";
    made_.insert(id.index);
    return name(id) = names_.fresh(ir::value_of(graph_, id).name);
  }

  void call_library(const ir::Node& node) {
    CallContext context{.name_of = [this](ValueId id) { return use(id); },
                        .device = device_,
                        .used = {},
                        .channels_last = options_.channels_last};
    for (const ValueId id : node.results) context.used.push_back(is_used(id));
    const CallText call = library_call(graph_, node, context);
    const bool list = gives_list(node);
    if (node.results.size() == 1 && !list) {
      body_ += fmt::format("{} = {}\n", make(node.results[0]), call.text);
      return;
    }
    const auto first = std::find(context.used.begin(), context.used.end(), true);
    const bool alone = std::count(context.used.begin(), context.used.end(), true) == 1;
    if (alone) {
      const auto at = first - context.used.begin();
      const std::string index = call.only_first ? "" : fmt::format("[{}]", at);
      body_ +=
          fmt::format("{} = {}{}\n", make(node.results[static_cast<size_t>(at)]), call.text, index);
      return;
    }
    std::vector<std::string> made;
    for (const ValueId id : node.results) made.push_back(make(id));
    body_ += fmt::format("{}{} = {}\n", joined(made), made.size() == 1 ? "," : "", call.text);
  }

  void call_region(int number) {
    const Region& region = plan_.regions[static_cast<size_t>(number)];
    const std::string function = fmt::format("{}region{}", prefix_, number);
    std::vector<std::string> given, made;
    for (const ValueId id : region.inputs) {
      const bool ours = !made_.contains(id.index);
      given.push_back(use(id) + (ours ? "" : ".contiguous()"));
    }
    // Constants of its program, by the values they come from.
    if (given.empty()) given.push_back(device_holder_);
    for (const ValueId id : region.outputs) made.push_back(make(id));
    body_ += fmt::format("{}{} = {}({})\n", joined(made), made.size() == 1 ? "," : "", function,
                         joined(given));
    std::vector<std::vector<int64_t>> shapes;
    for (const ValueId id : region.outputs) shapes.push_back(ir::value_of(graph_, id).shape);
    text_.functions += print_launcher(region.program, region.kernels, shapes, function);
  }

  const Problem& problem_;
  const Graph& graph_;
  const ModelPlan& plan_;
  const ComputeOptions& options_;
  std::string prefix_;
  Names names_;
  std::vector<std::string> name_;
  std::vector<int> last_use_;  // the last step that reads a value; one past the end: returned
  std::set<int> made_;         // values that a step made
  std::string body_, device_, device_holder_;
  ComputeText text_;
};

}  // namespace

ComputeText print_compute(const Problem& problem, const ModelPlan& plan,
                          const ComputeOptions& options, const std::string& prefix) {
  return Computer(problem, plan, options, prefix).print();
}

}  // namespace ke::triton
