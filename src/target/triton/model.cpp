// SPDX-License-Identifier: Apache-2.0
#include "target/triton/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "target/triton/compute.hpp"
#include "target/triton/kernel.hpp"
#include "target/triton/python.hpp"
#include "target/triton/regions.hpp"
#include "target/triton/scalar_ops.hpp"

namespace ke::triton {
namespace {

constexpr int64_t kGraphNodesMin = 6;  // fewer launches are not worth a graph's copies
constexpr int64_t kGraphBytesMax = 64 << 20;

int64_t preferred_graph(const Problem& problem, size_t steps) {
  int64_t bytes = problem.output_bytes();
  for (const TensorSpec& spec : problem.inputs) {
    if (spec.kind == ir::InputKind::argument) bytes += spec.bytes();
  }
  return static_cast<int64_t>(steps) >= kGraphNodesMin && bytes <= kGraphBytesMax ? 1 : 0;
}

bool has_image_convolutions(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return ir::operation_of(node) == "convolution" && !node.results.empty() &&
           ir::value_of(graph, node.results[0]).shape.size() >= 4;
  });
}

int64_t chosen_or(const ir::Schedule& schedule, std::string_view name, int64_t otherwise) {
  const auto found = schedule.find(std::string(name));
  return found == schedule.end() ? otherwise : found->second;
}

std::string region_name(size_t one, size_t count, size_t region) {
  return count == 1 ? fmt::format("region{}", region) : fmt::format("case{}_region{}", one, region);
}

std::string kernel_name(const std::string& region, size_t kernel, std::string_view choice) {
  return fmt::format("{}_kernel{}_{}", region, kernel, choice);
}

constexpr std::string_view kDeclare = R"(
def declare(model, name, tensor, kind):
    """Makes a parameter or buffer of a dotted name, with the modules on the way to it."""
    *path, last = name.split(".")
    for part in path:
        if part not in model._modules:
            model.add_module(part, torch.nn.Module())
        model = model._modules[part]
    if kind == "parameter":
        model.register_parameter(last, torch.nn.Parameter(tensor, requires_grad=False))
        return model._parameters, last
    model.register_buffer(last, tensor)
    return model._buffers, last


def tensors_of(value):
    """The tensors among arguments, in order, whatever holds them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (list, tuple)) or not isinstance(value, (str, bytes)) and hasattr(
        value, "__iter__"
    ):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []

)";

constexpr std::string_view kReplay = R"(
def replay(self, tensors):
    """The same by a captured graph, on copies of the arguments."""
    moving = [t for t, fixed in zip(tensors, self.fixed) if not fixed]
    key = tuple((t.shape, t.stride(), t.dtype, t.device) for t in moving)
    key += tuple(t.data_ptr() for t, fixed in zip(tensors, self.fixed) if fixed)
    if key not in self.graphs:
        self.graphs[key] = self.capture(tensors)
    graph, inputs, outputs = self.graphs[key]
    for own, given in zip(inputs, moving):
        own.copy_(given)
    graph.replay()
    return tuple(t.clone() for t in outputs) if isinstance(outputs, tuple) else outputs.clone()

def capture(self, tensors):
    own = [t if fixed else t.clone() for t, fixed in zip(tensors, self.fixed)]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        self.compute(own)  # what happens at first calls only must not be captured
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = self.compute(own)
    return graph, [t for t, fixed in zip(own, self.fixed) if not fixed], outputs
)";

class ModulePrinter {
 public:
  ModulePrinter(std::span<const Problem* const> cases, const ir::Schedule& schedule)
      : cases_(cases), schedule_(schedule), first_(*cases.front()) {}

  Result<std::string> print() {
    std::string functions, methods, constants;
    size_t steps = 0;
    for (size_t i = 0; i < cases_.size(); ++i) {
      const bool several = cases_.size() > 1;
      const ModelPlan all = partition(*cases_[i]->graph);
      std::vector<bool> kept;
      for (size_t r = 0; r < all.regions.size(); ++r) {
        kept.push_back(chosen_or(schedule_, region_name(i, cases_.size(), r), 1) != 0);
      }
      ModelPlan plan = without(*cases_[i]->graph, all, kept);
      set_schedules(plan, i, kept);
      steps = std::max(steps, plan.steps.size());
      const ComputeOptions options{.method = several ? fmt::format("compute{}", i) : "compute",
                                   .channels_last = chosen_or(schedule_, "channels_last", 0) != 0};
      const ComputeText text =
          print_compute(*cases_[i], plan, options, several ? fmt::format("case{}_", i) : "");
      functions += text.functions;
      methods += "\n" + text.method;
      constants += constant_lines(text.constants);
    }
    const bool graph = chosen_or(schedule_, "graph", preferred_graph(first_, steps)) != 0;
    const std::string uses = functions.empty() ? ""
                                               : "import triton\nimport triton.language as tl\n"
                                                 "from triton.language.extra import libdevice\n";
    return head() + "import torch\n" + uses + "\n" + std::string(kDeclare) +
           (functions.empty() ? "" : std::string(kHelpers)) + functions +
           "\nclass ModelNew(torch.nn.Module):\n" +
           indented(construction(constants, graph) + "\n" + forward(graph) + dispatch() + methods +
                        (graph ? std::string(kReplay) : std::string()),
                    4);
  }

 private:
  // Regions keep their numbers of the whole plan in the names of decisions.
  void set_schedules(ModelPlan& plan, size_t one, const std::vector<bool>& kept) const {
    size_t at = 0;
    for (size_t r = 0; r < kept.size(); ++r) {
      if (!kept[r]) continue;
      Region& region = plan.regions[at++];
      for (size_t k = 0; k < region.kernels.size(); ++k) {
        for (const ScheduleChoice& choice : kernel_choices(region.program, region.kernels[k])) {
          const std::string name = kernel_name(region_name(one, cases_.size(), r), k, choice.name);
          const auto found = schedule_.find(name);
          if (found != schedule_.end()) region.kernels[k].schedule[choice.name] = found->second;
        }
      }
    }
  }

  std::string head() const {
    std::string inputs, outputs;
    for (const TensorSpec& spec : first_.inputs) {
      if (spec.kind != ir::InputKind::argument) continue;
      inputs += fmt::format("{}{} {}{}", inputs.empty() ? "" : ", ", spec.name,
                            enum_name(spec.dtype), list_text(spec.shape));
    }
    for (const TensorSpec& spec : first_.outputs) {
      outputs += fmt::format("{}{}{}", outputs.empty() ? "" : ", ", enum_name(spec.dtype),
                             list_text(spec.shape));
    }
    return comment(fmt::format(
        "SPDX-License-Identifier: Apache-2.0\n \nArguments: {}.\nResults: {}.", inputs, outputs));
  }

  std::string construction(const std::string& constants, bool graph) const {
    std::string body = "super().__init__()\nself.state = [\n";
    std::string fixed;
    for (const TensorSpec& spec : first_.inputs) {
      const bool parameter = spec.kind == ir::InputKind::parameter;
      const bool state = parameter || spec.kind == ir::InputKind::buffer;
      fixed += fmt::format("{}{}", fixed.empty() ? "" : ", ", bool_text(state));
      if (!state) continue;
      body += fmt::format("    declare(self, {}, torch.empty({}, dtype={}), '{}'),\n",
                          python_string(spec.name), tuple_text(spec.shape), dtype_text(spec.dtype),
                          enum_name(spec.kind));
    }
    body += "]\n" + constants;
    if (graph) body += fmt::format("self.fixed = [{}]\nself.graphs = {{}}\n", fixed);
    return "def __init__(self, *_, **__):\n" + indented(body, 4);
  }

  static std::string constant_lines(const std::vector<ConstantBuffer>& constants) {
    std::string text;
    for (const ConstantBuffer& one : constants) {
      std::vector<std::string> values;
      for (const double value : one.value->constant) {
        const bool floating = ir::is_floating(one.value->dtype);
        values.push_back(floating ? float_text(value)
                                  : fmt::format("{}", static_cast<int64_t>(value)));
      }
      text += fmt::format(
          "self.register_buffer({}, torch.tensor([{}], dtype={}).reshape({}), persistent=False)\n",
          python_string(one.name), joined(values), dtype_text(one.value->dtype),
          tuple_text(one.value->shape));
    }
    return text;
  }

  // Arguments first, then state; random draws come as arguments and last in the contract.
  std::string forward(bool graph) const {
    int64_t arguments = 0;
    for (const TensorSpec& spec : first_.inputs) arguments += spec.kind == ir::InputKind::argument;
    std::string body =
        "given = tensors_of(arguments)\n"
        "state = [held[name] for held, name in self.state]\n";
    body += fmt::format("tensors = [*given[:{0}], *state, *given[{0}:]]\n", arguments);
    if (graph) {
      body +=
          "if tensors[0].is_cuda and not torch.cuda.is_current_stream_capturing():\n"
          "    return self.replay(tensors)\n";
    }
    body += "return self.compute(tensors)\n";
    return "def forward(self, *arguments):\n" + indented(body, 4);
  }

  // With several cases: chooses by the arguments' shapes.
  std::string dispatch() const {
    if (cases_.size() == 1) return "";
    std::string body;
    for (size_t i = 0; i < cases_.size(); ++i) {
      std::vector<std::string> shapes;
      for (const TensorSpec& spec : cases_[i]->inputs) shapes.push_back(tuple_text(spec.shape));
      body += fmt::format(
          "if [tuple(t.shape) for t in tensors] == [{}]:\n"
          "    return self.compute{}(tensors)\n",
          joined(shapes), i);
    }
    body += "raise ValueError('arguments of shapes that this module was not made for')\n";
    return "\ndef compute(self, tensors):\n" + indented(body, 4);
  }

  std::span<const Problem* const> cases_;
  const ir::Schedule& schedule_;
  const Problem& first_;
};

}  // namespace

std::vector<ScheduleChoice> choices_of(std::span<const Problem* const> cases) {
  std::vector<ScheduleChoice> choices;
  size_t steps = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i]->graph) return {};
    const ModelPlan plan = partition(*cases[i]->graph);
    steps = std::max(steps, plan.steps.size());
    for (size_t r = 0; r < plan.regions.size(); ++r) {
      const std::string name = region_name(i, cases.size(), r);
      const Region& region = plan.regions[r];
      choices.push_back({name, {0, 1}, 1, "Triton instead of the library"});
      for (size_t k = 0; k < region.kernels.size(); ++k) {
        for (ScheduleChoice& one : kernel_choices(region.program, region.kernels[k])) {
          one.name = kernel_name(name, k, one.name);
          choices.push_back(std::move(one));
        }
      }
    }
  }
  choices.push_back(
      {"graph", {0, 1}, preferred_graph(*cases[0], steps), "replay a captured graph"});
  if (has_image_convolutions(*cases[0]->graph)) {
    choices.push_back({"channels_last", {0, 1}, 1, "memory format of convolutions"});
  }
  return choices;
}

Result<std::string> print_module(std::span<const Problem* const> cases,
                                 const ir::Schedule& schedule) {
  for (const Problem* one : cases) {
    if (!one->graph) {
      return Error{Errc::unavailable, "the model has no graph: " + one->graph_error};
    }
  }
  return ModulePrinter(cases, schedule).print();
}

}  // namespace ke::triton
