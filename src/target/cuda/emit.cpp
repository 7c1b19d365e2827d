// SPDX-License-Identifier: Apache-2.0
//
// Assembles printed kernels into one source: what it computes, the launch lines, constants, the
// kernels. Intermediates live in scratch, whose layout is decided here.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "target/c_printer.hpp"
#include "target/cuda/cost.hpp"
#include "target/cuda/scalar_printer.hpp"
#include "target/cuda/skeleton.hpp"
#include "target/scratch_plan.hpp"

namespace ke::cuda {
namespace {

using ir::Role;
using ir::Tensor;
using ir::TensorId;

constexpr int64_t kScratchAlignment = 256, kCopyBlock = 256;

// Whether the language, a helper or a kernel may use this name.
bool is_taken(std::string_view name) {
  return target::is_keyword(name) || name.starts_with("ke_") || name.ends_with("_t") ||
         name.starts_with("kernel") || name.starts_with("copy_") || name.starts_with("case");
}

std::string shape_text(const Tensor& tensor) {
  std::string text;
  for (const int64_t extent : tensor.shape) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  }
  return fmt::format("{}[{}]", enum_name(tensor.dtype), text);
}

std::string tensor_list(const ir::Program& program, const std::vector<TensorId>& ids) {
  std::string text;
  for (const TensorId id : ids) {
    const Tensor& tensor = program.tensor(id);
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tensor.name, shape_text(tensor));
  }
  return text;
}

target::ScratchPlan scratch_of(const PrintedCase& one) {
  std::vector<target::ScratchUser> users;
  for (const PrintedKernel& printed : one.kernels) {
    users.push_back({&printed.kernel, printed.code.scratch_bytes});
  }
  return target::plan_scratch(*one.program, users, kScratchAlignment);
}

// One case of shapes.
class CaseAssembler {
 public:
  explicit CaseAssembler(const PrintedCase& one, std::string prefix)
      : program_(*one.program),
        kernels_(one.kernels),
        plan_(scratch_of(one)),
        prefix_(std::move(prefix)) {}

  std::string about() const {
    std::string names;
    for (const PrintedKernel& printed : kernels_) {
      names += (names.empty() ? "" : ", then ") + printed.kernel.name;
    }
    return (names.empty() ? std::string("No work.") : "Runs " + names + ".") +
           "\nInputs: " + tensor_list(program_, program_.inputs) +
           ".\nOutputs: " + tensor_list(program_, program_.outputs) + ".";
  }

  std::string launch_lines() const {
    std::string text = fmt::format("// ke:scratch {}\n", plan_.bytes);
    for (const PrintedKernel& printed : kernels_) {
      for (const LaunchText& launch : printed.code.launches) {
        const std::string shared =
            launch.shared_bytes > 0 ? fmt::format(" shared={}", launch.shared_bytes) : "";
        text += fmt::format("// ke:launch {} grid=({}, {}) block=({}){} args=({})\n",
                            launch.function, launch.grid_x, launch.grid_y, launch.block, shared,
                            arguments(printed.kernel, printed.code.scratch_bytes > 0));
      }
    }
    for (const size_t output : copied_outputs()) text += copy_line(output);
    return text;
  }

  std::string functions() const {
    std::string text = constants();
    for (const PrintedKernel& printed : kernels_) text += kernel_section(printed);
    for (const size_t output : copied_outputs()) text += copy_function(output);
    return text;
  }

 private:
  const Tensor& output(size_t i) const { return program_.tensor(program_.outputs[i]); }

  // Outputs that are inputs, constants or other outputs.
  std::vector<size_t> copied_outputs() const {
    std::vector<size_t> found;
    std::set<TensorId> seen;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const bool fresh = seen.insert(program_.outputs[i]).second;
      if (output(i).role == Role::output && fresh) continue;
      found.push_back(i);
    }
    return found;
  }

  std::string argument_of(TensorId id) const {
    const auto position = [&](const std::vector<TensorId>& list) {
      return std::find(list.begin(), list.end(), id) - list.begin();
    };
    if (program_.tensor(id).role == Role::input)
      return fmt::format("in{}", position(program_.inputs));
    if (program_.tensor(id).role == Role::output) {
      return fmt::format("out{}", position(program_.outputs));
    }
    return fmt::format("scratch+{}", plan_.offsets.at(id));
  }

  std::string arguments(const ir::FusedKernel& kernel, bool with_scratch) const {
    std::string text;
    std::set<TensorId> done;
    const auto add = [&](const std::string& argument) {
      text += (text.empty() ? "" : ", ") + argument;
    };
    for (const std::vector<TensorId>* list : {&kernel.writes, &kernel.reads}) {
      for (const TensorId id : *list) {
        if (program_.tensor(id).role == Role::constant || !done.insert(id).second) continue;
        add(argument_of(id));
      }
    }
    if (with_scratch) add(fmt::format("scratch+{}", plan_.private_offset));
    return text;
  }

  static std::string kernel_section(const PrintedKernel& printed) {
    std::string about = printed.kernel.name + ": ";
    for (size_t i = 0; i < printed.kernel.stages.size(); ++i) {
      const std::string& origin = printed.kernel.stages[i].origin;
      about += (i > 0 ? "; " : "") + (origin.empty() ? std::string("a step") : origin);
    }
    about += ".\n" + printed.code.schedule;
    return target::comment(about) + printed.code.functions + "\n";
  }

  std::string constants() const {
    target::CodeWriter out;
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.role != Role::constant) continue;
      std::string text = fmt::format("alignas(16) static __device__ const {} {}Constant[{}] = {{",
                                     target::storage_type(tensor.dtype), tensor.name,
                                     std::max<int64_t>(1, tensor.elements()));
      size_t column = text.size();
      for (size_t i = 0; i < tensor.values.size(); ++i) {
        const std::string value = constant_text(tensor.dtype, tensor.values[i]);
        if (column + value.size() > 96) {
          text += "\n    ";
          column = 4;
        }
        text += value + (i + 1 < tensor.values.size() ? ", " : "");
        column += value.size() + 2;
      }
      out.lines(text + "};");
    }
    return out.take() + (out.text().empty() ? "" : "\n");
  }

  // A static initializer takes no call, so what has no literal is made of numbers.
  static std::string constant_text(ir::DType dtype, double value) {
    const bool plain = !is_floating(dtype) || bytes_of(dtype) == 2 || std::isfinite(value);
    if (plain) return target::stored_literal(dtype, value);
    const std::string_view type = target::storage_type(dtype);
    if (std::isnan(value)) return fmt::format("({})(0.0 / 0.0)", type);
    return fmt::format("({})({}1.0 / 0.0)", type, value < 0 ? "-" : "");
  }

  std::string copy_name(size_t i) const { return fmt::format("{}copy_output{}", prefix_, i); }

  std::string copy_line(size_t i) const {
    const int64_t blocks = (output(i).elements() + kCopyBlock - 1) / kCopyBlock;
    const bool constant = output(i).role == Role::constant;
    return fmt::format("// ke:launch {} grid=({}) block=({}) args=(out{}{})\n", copy_name(i),
                       blocks, kCopyBlock, i,
                       constant ? "" : ", " + argument_of(program_.outputs[i]));
  }

  std::string copy_function(size_t i) const {
    const Tensor& tensor = output(i);
    const std::string_view type = target::storage_type(tensor.dtype);
    const bool constant = tensor.role == Role::constant;
    target::CodeWriter out;
    out.open(fmt::format("extern \"C\" __global__ void {0}({1}* toOutput{2})", copy_name(i), type,
                         constant ? "" : fmt::format(", const {}* fromTensor", type)));
    out.line("int64_t restIndex = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;");
    out.line(fmt::format("if (restIndex >= {}) return;", tensor.elements()));
    out.line("toOutput += restIndex;");
    std::string offset = "0";
    for (size_t d = tensor.shape.size(); d-- > 0;) {
      const int64_t extent = std::max<int64_t>(tensor.shape[d], 1);
      out.line(fmt::format("const int64_t axisD{} = restIndex % {};", d, extent));
      out.line(fmt::format("restIndex /= {};", extent));
      offset += fmt::format(" + axisD{} * {}", d, tensor.strides[d]);
    }
    const std::string from = constant ? tensor.name + "Constant" : "fromTensor";
    out.line(fmt::format("*toOutput = {}[{}];", from, offset));
    out.close();
    return out.take() + "\n";
  }

  const ir::Program& program_;
  std::span<const PrintedKernel> kernels_;
  target::ScratchPlan plan_;
  std::string prefix_;
};

// "in0.ndim == 1 && in0[0] == 16", over the inputs whose shape changes by case.
std::string shape_condition(std::span<const PrintedCase> cases, const ir::Program& program) {
  std::string text;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::vector<int64_t>& shape = program.tensor(program.inputs[i]).shape;
    const auto differs = [&](const PrintedCase& other) {
      const std::vector<TensorId>& inputs = other.program->inputs;
      return i >= inputs.size() || other.program->tensor(inputs[i]).shape != shape;
    };
    if (std::none_of(cases.begin(), cases.end(), differs)) continue;
    text += fmt::format("{}in{}.ndim == {}", text.empty() ? "" : " && ", i, shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      text += fmt::format(" && in{}[{}] == {}", i, d, shape[d]);
    }
  }
  return text.empty() ? "1" : text;
}

}  // namespace

std::string assemble(std::span<const PrintedCase> cases) {
  std::string about, lines, functions;
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool several = cases.size() > 1;
    const CaseAssembler assembler(cases[i], several ? fmt::format("case{}_", i) : "");
    about += several ? fmt::format("{}Case {}: ", i == 0 ? "" : "\n \n", i) : "";
    about += assembler.about();
    if (several) lines += "// ke:case " + shape_condition(cases, *cases[i].program) + "\n";
    lines += assembler.launch_lines();
    const std::string name = fmt::format("case{}", i);
    functions += several ? fmt::format("namespace {0} {{\n\n{1}}}  // namespace {0}\n\n", name,
                                       assembler.functions())
                         : assembler.functions();
  }
  return target::comment("SPDX-License-Identifier: Apache-2.0\n \n" + about) + "//\n" + lines +
         "#include <stdint.h>\n\n#include \"kernelevolve/device.h\"\n\n" + functions;
}

std::string PrintContext::pointer(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  if (tensor.role == Role::constant) return tensor.name + "Constant";
  std::string name = tensor.name;
  const auto is_name_of = [&](const Tensor& other) { return other.name == name; };
  if (!is_taken(name)) return name;
  do {
    name += '_';
  } while (std::any_of(program.tensors.begin(), program.tensors.end(), is_name_of));
  return name;
}

std::string PrintContext::fresh(const std::string& stem) {
  while (true) {
    std::string name = stem + std::to_string(next_name++);
    const auto same_name = [&](const Tensor& other) { return other.name == name; };
    if (std::none_of(program.tensors.begin(), program.tensors.end(), same_name)) return name;
  }
}

std::vector<std::string> axis_variables(const PrintContext& context,
                                        const std::vector<ir::Axis>& axes) {
  std::vector<std::string> names;
  for (const ir::Axis& axis : axes) {
    const auto clashes = [&](const std::string& name) {
      const auto same_name = [&](const Tensor& tensor) { return tensor.name == name; };
      return is_taken(name) || std::find(names.begin(), names.end(), name) != names.end() ||
             std::any_of(context.program.tensors.begin(), context.program.tensors.end(), same_name);
    };
    std::string name = axis.name;
    while (clashes(name)) name += "Axis";
    names.push_back(name);
  }
  return names;
}

std::string parameters(const PrintContext& context, bool with_scratch) {
  std::string text;
  std::set<TensorId> done;
  const auto add = [&](const std::string& parameter) {
    text += (text.empty() ? "" : ", ") + parameter;
  };
  for (const TensorId id : context.kernel.writes) {
    if (!done.insert(id).second) continue;
    add(fmt::format("{}* __restrict__ {}", target::storage_type(context.tensor(id).dtype),
                    context.pointer(id)));
  }
  for (const TensorId id : context.kernel.reads) {
    if (context.tensor(id).role == Role::constant || !done.insert(id).second) continue;
    add(fmt::format("const {}* __restrict__ {}", target::storage_type(context.tensor(id).dtype),
                    context.pointer(id)));
  }
  if (with_scratch) add("char* __restrict__ scratchRoom");
  return text;
}

std::string function_head(const PrintContext& context, const std::string& function, int64_t threads,
                          bool with_scratch, bool alone, int64_t cluster) {
  const std::string together =
      cluster > 1 ? fmt::format("__cluster_dims__({}, 1, 1) ", cluster) : "";
  return fmt::format("extern \"C\" __global__ void {}__launch_bounds__({}{}) {}({})", together,
                     threads, alone ? ", 1" : "", function, parameters(context, with_scratch));
}

}  // namespace ke::cuda
