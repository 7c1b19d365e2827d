// SPDX-License-Identifier: Apache-2.0
//
// Assembles printed kernels into one source: what it computes, the helpers it uses, the kernels,
// and ke_launch, which checks its arguments, lays intermediates out in scratch and runs the kernels
// in order. Several shape cases share the helpers and the entry.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "target/c_printer.hpp"
#include "target/scratch_plan.hpp"
#include "target/x86/access.hpp"
#include "target/x86/helpers.hpp"
#include "target/x86/names.hpp"
#include "target/x86/skeleton.hpp"
#include "target/x86/vector_ops.hpp"

namespace ke::x86 {
namespace {

using ir::DType;
using ir::Role;
using ir::Tensor;
using ir::TensorId;

constexpr int64_t kAlignment = 64;

target::ScratchPlan scratch_of(const ir::Program& program,
                               std::span<const PrintedKernel> kernels) {
  std::vector<target::ScratchUser> users;
  for (const PrintedKernel& printed : kernels) {
    users.push_back({printed.kernel, printed.code.scratch_bytes});
  }
  return target::plan_scratch(program, users, kAlignment);
}

std::string camel_case(std::string_view name) {
  std::string result;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
    } else {
      result += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = false;
    }
  }
  return result;
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

// Elements, not dimensions: an output may group its dimensions differently than the program.
constexpr std::string_view kMatches =
    "static bool matches(const ke_tensor& tensor, int code, int bits, int64_t elements) {\n"
    "  for (int32_t d = 0; d < tensor.ndim; ++d) {\n"
    "    if (tensor.shape[d] == 0) return elements == 0;\n"
    "    if (elements % tensor.shape[d] != 0) return false;\n"
    "    elements /= tensor.shape[d];\n"
    "  }\n"
    "  return tensor.dtype_code == code && tensor.dtype_bits == bits && elements == 1;\n"
    "}\n\n";

std::string file_head(const std::string& about) {
  return target::comment("SPDX-License-Identifier: Apache-2.0\n \n" + about) +
         "#include <stdint.h>\n\n#include \"kernelevolve/kernel.h\"\n\n";
}

// Opens a function with ke_launch's parameters.
void open_launch(target::CodeWriter& out, std::string_view head) {
  const std::string indent(head.size(), ' ');
  out.line(fmt::format("{}const ke_tensor* inputs, int32_t input_count,", head));
  out.line(fmt::format("{}ke_tensor* outputs, int32_t output_count,", indent));
  out.open(fmt::format("{}ke_context* context)", indent));
}

class Assembler {
 public:
  Assembler(const ir::Program& program, std::span<const PrintedKernel> kernels)
      : program_(program), kernels_(kernels), plan_(scratch_of(program, kernels)) {}

  std::string run() {
    std::string text = file_head(about()) + constants() + helper_sources(helpers()) + functions();
    if (plan_.bytes > 0) {
      print_scratch_bytes();
      out_.line("extern \"C\" int64_t ke_scratch_bytes(void) { return kScratchBytes; }");
      out_.line("");
    }
    if (has_tensors()) out_.lines(kMatches);
    print_launch("extern \"C\" int ke_launch(");
    return text + out_.take();
  }

  // Everything but what cases share.
  std::string run_in_namespace(std::string_view name) {
    std::string text = fmt::format("namespace {} {{\n\n", name) + constants() + functions();
    if (plan_.bytes > 0) print_scratch_bytes();
    print_launch("static int launch(");
    return text + out_.take() + fmt::format("\n}}  // namespace {}\n\n", name);
  }

  std::string about() const {
    std::string names;
    for (const PrintedKernel& printed : kernels_) {
      names += (names.empty() ? "" : ", then ") + printed.kernel->name;
    }
    return (names.empty() ? std::string("No work.") : "Runs " + names + ".") +
           "\nInputs: " + tensor_list(program_, program_.inputs) +
           ".\nOutputs: " + tensor_list(program_, program_.outputs) + ".";
  }

  std::set<std::string> helpers() const {
    std::set<std::string> keys;
    for (const PrintedKernel& printed : kernels_) {
      keys.insert(printed.code.helpers.begin(), printed.code.helpers.end());
    }
    return keys;
  }

  int64_t scratch_bytes() const { return plan_.bytes; }
  bool has_tensors() const { return !program_.inputs.empty() || !program_.outputs.empty(); }

 private:
  std::string functions() const {
    std::string text;
    for (const PrintedKernel& printed : kernels_) text += kernel_section(printed);
    return text;
  }

  std::string constants() const {
    target::CodeWriter out;
    for (const Tensor& tensor : program_.tensors) {
      if (tensor.role != Role::constant) continue;
      std::string text =
          fmt::format("alignas(64) static const {} {}[{}] = {{", target::storage_type(tensor.dtype),
                      name_of(tensor), std::max<int64_t>(1, tensor.elements()));
      size_t column = text.size();
      for (size_t i = 0; i < tensor.values.size(); ++i) {
        const std::string value = target::stored_literal(tensor.dtype, tensor.values[i]);
        if (column + value.size() > 96) {
          text += "\n    ";
          column = 4;
        }
        text += value + (i + 1 < tensor.values.size() ? ", " : "");
        column += value.size() + 2;
      }
      out.lines(text + "};");
    }
    return out.take();
  }

  std::string name_of(const Tensor& tensor) const { return variable_of(program_, tensor); }

  static std::string kernel_section(const PrintedKernel& printed) {
    std::string about = printed.kernel->name + ": ";
    for (size_t i = 0; i < printed.kernel->stages.size(); ++i) {
      const std::string& origin = printed.kernel->stages[i].origin;
      about += (i > 0 ? "; " : "") + (origin.empty() ? std::string("a step") : origin);
    }
    about += ".\n" + printed.code.schedule;
    return target::comment(about) + printed.code.functions + "\n";
  }

  void print_scratch_bytes() {
    out_.line(fmt::format("constexpr int64_t kScratchBytes = {};", plan_.bytes));
    out_.line("");
  }

  void print_launch(std::string_view head) {
    open_launch(out_, head);
    print_checks();
    print_pointers();
    for (const PrintedKernel& printed : kernels_) {
      if (printed.code.scratch_bytes > 0) {
        out_.line(fmt::format("char* const {}_scratch = scratch + {};", printed.kernel->name,
                              plan_.private_offset));
      }
      out_.lines(printed.code.launch);
    }
    print_copies();
    out_.line("return 0;");
    out_.close();
  }

  void print_check(std::string_view list, size_t i, const Tensor& tensor) {
    int code = KE_INT;
    if (is_floating(tensor.dtype)) code = tensor.dtype == DType::bfloat16 ? KE_BFLOAT : KE_FLOAT;
    if (tensor.dtype == DType::uint8) code = KE_UINT;
    if (tensor.dtype == DType::boolean) code = KE_BOOL;
    constexpr std::string_view names[] = {
        "KE_DTYPE_INT", "KE_DTYPE_UINT", "KE_DTYPE_FLOAT", "", "KE_DTYPE_BFLOAT", "",
        "KE_DTYPE_BOOL"};
    out_.line(fmt::format("if (!matches({}[{}], {}, {}, {})) return 1;", list, i, names[code],
                          8 * bytes_of(tensor.dtype), tensor.elements()));
  }

  void print_checks() {
    out_.line(fmt::format("if (input_count != {} || output_count != {}) return 1;",
                          program_.inputs.size(), program_.outputs.size()));
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      print_check("inputs", i, program_.tensor(program_.inputs[i]));
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      print_check("outputs", i, program_.tensor(program_.outputs[i]));
    }
    if (plan_.bytes > 0) out_.line("if (context->scratch_bytes < kScratchBytes) return 1;");
    if (plan_.bytes > 0 || !plan_.offsets.empty()) {  // intermediates may all be empty
      out_.line("char* const scratch = (char*)context->scratch;");
    }
  }

  void print_pointers() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const Tensor& tensor = program_.tensor(program_.inputs[i]);
      const std::string_view type = target::storage_type(tensor.dtype);
      out_.line(fmt::format("[[maybe_unused]] const {0}* const {1} = (const {0}*)inputs[{2}].data;",
                            type, name_of(tensor), i));
    }
    std::set<TensorId> declared;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Tensor& tensor = program_.tensor(program_.outputs[i]);
      if (tensor.role != Role::output || !declared.insert(program_.outputs[i]).second) continue;
      out_.line(fmt::format("{0}* const {1} = ({0}*)outputs[{2}].data;",
                            target::storage_type(tensor.dtype), name_of(tensor), i));
    }
    for (const auto& [id, offset] : plan_.offsets) {
      const Tensor& tensor = program_.tensor(id);
      out_.line(fmt::format("{0}* const {1} = ({0}*)(scratch + {2});",
                            target::storage_type(tensor.dtype), name_of(tensor), offset));
    }
  }

  // Outputs that are inputs, constants or other outputs.
  void print_copies() {
    std::set<TensorId> seen;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const TensorId id = program_.outputs[i];
      const Tensor& tensor = program_.tensor(id);
      const bool fresh = seen.insert(id).second;
      if (tensor.role == Role::output && fresh) continue;
      print_copy(tensor, i);
    }
  }

  void print_copy(const Tensor& tensor, size_t output) {
    const std::string_view type = target::storage_type(tensor.dtype);
    const std::string name = fmt::format("copy{}", output);
    out_.line(fmt::format("{0}* {1} = ({0}*)outputs[{2}].data;", type, name, output));
    std::string offset = "0";
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      out_.open(fmt::format("for (int64_t d{0} = 0; d{0} < {1}; ++d{0})", d, tensor.shape[d]));
      offset += fmt::format(" + d{} * {}", d, tensor.strides[d]);
    }
    out_.line(fmt::format("*{}++ = {}[{}];", name, name_of(tensor), offset));
    for (size_t d = 0; d < tensor.shape.size(); ++d) out_.close();
  }

  enum DlpackCode { KE_INT = 0, KE_UINT = 1, KE_FLOAT = 2, KE_BFLOAT = 4, KE_BOOL = 6 };

  const ir::Program& program_;
  std::span<const PrintedKernel> kernels_;
  target::ScratchPlan plan_;
  target::CodeWriter out_;
};

// "inputs[0].ndim == 1 && inputs[0].shape[0] == 16", over the inputs whose shape changes by case.
std::string shape_condition(const ir::Program& program, const std::vector<size_t>& changing) {
  std::string text;
  for (const size_t i : changing) {
    const Tensor& tensor = program.tensor(program.inputs[i]);
    text += fmt::format("{}inputs[{}].ndim == {}", text.empty() ? "" : " &&\n    ", i,
                        tensor.shape.size());
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      text += fmt::format(" && inputs[{}].shape[{}] == {}", i, d, tensor.shape[d]);
    }
  }
  return text;
}

std::vector<size_t> changing_inputs(std::span<const PrintedCase> cases) {
  const ir::Program& first = *cases.front().program;
  std::vector<size_t> changing;
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const auto differs = [&](const PrintedCase& other) {
      return other.program->tensor(other.program->inputs[i]).shape !=
             first.tensor(first.inputs[i]).shape;
    };
    if (std::any_of(cases.begin(), cases.end(), differs)) changing.push_back(i);
  }
  KE_ASSERT(!changing.empty());
  return changing;
}

void print_dispatch(target::CodeWriter& out, std::span<const PrintedCase> cases) {
  open_launch(out, "extern \"C\" int ke_launch(");
  out.line(fmt::format("if (input_count != {}) return 1;", cases[0].program->inputs.size()));
  const std::vector<size_t> changing = changing_inputs(cases);
  for (size_t i = 0; i < cases.size(); ++i) {
    out.lines(fmt::format("if ({}) {{", shape_condition(*cases[i].program, changing)));
    out.line(fmt::format("  return case{}::launch(inputs, input_count, outputs, output_count, "
                         "context);",
                         i));
    out.line("}");
  }
  out.line("return 1;  // no case of these shapes");
  out.close();
}

}  // namespace

std::string assemble(const ir::Program& program, std::span<const PrintedKernel> kernels) {
  return Assembler(program, kernels).run();
}

std::string assemble_cases(std::span<const PrintedCase> cases) {
  std::string about = "Kernels for several shape cases; ke_launch chooses by the inputs' shapes.";
  std::string sections;
  std::set<std::string> helpers;
  int64_t scratch_bytes = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    Assembler assembler(*cases[i].program, cases[i].kernels);
    about += fmt::format("\n \nCase {}: {}", i, assembler.about());
    helpers.merge(assembler.helpers());
    scratch_bytes = std::max(scratch_bytes, assembler.scratch_bytes());
    sections += assembler.run_in_namespace(fmt::format("case{}", i));
  }
  target::CodeWriter out;
  if (scratch_bytes > 0) {
    out.line(fmt::format("extern \"C\" int64_t ke_scratch_bytes(void) {{ return {}; }}",
                         scratch_bytes));
    out.line("");
  }
  print_dispatch(out, cases);
  return file_head(about) + helper_sources(helpers) + std::string(kMatches) + sections +
         out.take();
}

std::string PrintContext::pointer(TensorId id) const {
  return variable_of(program, program.tensor(id));
}

std::string PrintContext::fresh(const std::string& stem) {
  while (true) {
    std::string name = stem + std::to_string(next_name++);
    const auto same_name = [&](const Tensor& tensor) { return tensor.name == name; };
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
    while (clashes(name)) name += "_axis";
    names.push_back(name);
  }
  return names;
}

ArgumentBlock argument_block(const PrintContext& context, bool with_scratch) {
  ArgumentBlock block;
  block.type = camel_case(context.kernel.name) + "Arguments";
  block.variable = context.kernel.name + "_arguments";
  std::string fields, values;
  block.unpack = fmt::format("const {0}& arguments = *(const {0}*)argument;\n", block.type);
  const auto add = [&](std::string_view type, const std::string& name) {
    fields += fmt::format("  {}* {};\n", type, name);
    values += (values.empty() ? "" : ", ") + name;
    block.unpack += fmt::format("{0}* __restrict const {1} = arguments.{1};\n", type, name);
  };
  std::set<TensorId> done;
  for (const TensorId id : context.kernel.writes) {
    if (!done.insert(id).second) continue;
    add(target::storage_type(context.tensor(id).dtype), context.pointer(id));
  }
  for (const TensorId id : context.kernel.reads) {
    if (context.tensor(id).role == Role::constant || !done.insert(id).second) continue;
    add(fmt::format("const {}", target::storage_type(context.tensor(id).dtype)),
        context.pointer(id));
  }
  if (with_scratch) add("char", context.kernel.name + "_scratch");
  block.declaration = fmt::format("struct {} {{\n{}}};\n\n", block.type, fields);
  block.initializer = "{" + values + "}";
  return block;
}

std::string declare_arguments(const ArgumentBlock& block) {
  return fmt::format("{} {} = {};\n", block.type, block.variable, block.initializer);
}

std::string launch_tasks([[maybe_unused]] const PrintContext& context, const ArgumentBlock& block,
                         std::string_view function, std::string_view tasks, bool parallel) {
  if (parallel) {
    return fmt::format("context->parallel_for(context->pool, {}, {}, &{});\n", tasks, function,
                       block.variable);
  }
  if (tasks == "1") return fmt::format("{}(0, &{});\n", function, block.variable);
  return fmt::format("for (int64_t task = 0; task < {}; ++task) {}(task, &{});\n", tasks, function,
                     block.variable);
}

}  // namespace ke::x86
