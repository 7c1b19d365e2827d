// SPDX-License-Identifier: Apache-2.0
//
// The texts of an exported folder that depend on the problem.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "app/export.hpp"
#include "base/assert.hpp"

namespace ke::app {

namespace {

std::string identifier(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return result;
}

struct CType {
  const char* name;
  int code, bits;
};

CType c_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::float64:
      return {"double", 2, 64};
    case ir::DType::float32:
      return {"float", 2, 32};
    case ir::DType::float16:
      return {"uint16_t", 2, 16};
    case ir::DType::bfloat16:
      return {"uint16_t", 4, 16};
    case ir::DType::int64:
      return {"int64_t", 0, 64};
    case ir::DType::int32:
      return {"int32_t", 0, 32};
    case ir::DType::int16:
      return {"int16_t", 0, 16};
    case ir::DType::int8:
      return {"int8_t", 0, 8};
    case ir::DType::uint8:
      return {"uint8_t", 1, 8};
    case ir::DType::boolean:
      return {"bool", 6, 8};
  }
  KE_ASSERT(false);
}

// A name for each tensor that is no keyword, no other tensor and none of ours: "gemm.weight"
// becomes gemm_weight, "for" becomes for_.
std::vector<std::string> parameter_names(const Problem& problem) {
  static const std::set<std::string> kTaken = {
      "int",     "float",       "double", "bool",     "char",     "for",      "if",
      "while",   "return",      "class",  "this",     "new",      "delete",   "auto",
      "const",   "default",     "switch", "case",     "struct",   "union",    "void",
      "short",   "long",        "signed", "unsigned", "do",       "else",     "inputs",
      "outputs", "num_threads", "std",    "operator", "template", "register", "static"};
  std::set<std::string> used = kTaken;
  std::vector<std::string> names;
  const auto add = [&](const std::string& wish) {
    std::string name = identifier(wish);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "x" + name;
    while (!used.insert(name).second) name += '_';
    names.push_back(name);
  };
  for (const TensorSpec& spec : problem.inputs) add(spec.name);
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    add(problem.outputs.size() == 1 ? "output" : fmt::format("output{}", i));
  }
  return names;
}

std::string list_of(const std::vector<int64_t>& values) {
  return fmt::format("{{{}}}", fmt::join(values, ", "));
}

std::string tensor_lines(const std::vector<TensorSpec>& specs, const std::string* names,
                         const char* array) {
  std::string text;
  std::string entries;
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorSpec& spec = specs[i];
    const CType type = c_type(spec.dtype);
    const size_t rank = spec.shape.size();
    const std::string prefix = fmt::format("{}_{}", array, i);
    if (rank > 0) {
      text +=
          fmt::format("  static constexpr int64_t {}_shape[] = {};\n", prefix, list_of(spec.shape));
      text += fmt::format("  static constexpr int64_t {}_strides[] = {};\n", prefix,
                          list_of(spec.strides));
    }
    const bool input = array[0] == 'i';
    const std::string pointer =
        input ? fmt::format("const_cast<{}*>({})", type.name, names[i]) : names[i];
    entries += fmt::format("      {{{}, {}, {}, {}, {}, {}, 1}},\n", pointer,
                           rank > 0 ? prefix + "_shape" : "nullptr",
                           rank > 0 ? prefix + "_strides" : "nullptr", rank, type.code, type.bits);
  }
  return text + fmt::format("  {}ke_tensor {}[] = {{\n{}  }};\n", array[0] == 'i' ? "const " : "",
                            array, entries);
}

std::string describe(const TensorSpec& spec) {
  return fmt::format("{} [{}], strides [{}]", enum_name(spec.dtype), fmt::join(spec.shape, ", "),
                     fmt::join(spec.strides, ", "));
}

// ", drawn by bernoulli_(0.7)" for the inputs of the kind `random`; they are the last ones.
std::string drawn_by(const Problem& problem, size_t input) {
  const size_t first = problem.inputs.size() - problem.draws.size();
  if (input < first) return "";
  const Draw& draw = problem.draws[input - first];
  return fmt::format(", drawn by {}({})", draw.method, fmt::join(draw.parameters, ", "));
}

// The function that calls the kernel for one case, below what its parameters are.
std::string function_of(const Problem& problem, const std::string& function) {
  const std::vector<std::string> names = parameter_names(problem);
  std::string text;
  std::vector<std::string> parameters;
  size_t next = 0;
  for (const TensorSpec& spec : problem.inputs) {
    text += fmt::format("// {}: {}{}\n", names[next], describe(spec), drawn_by(problem, next));
    parameters.push_back(fmt::format("const {}* {}", c_type(spec.dtype).name, names[next++]));
  }
  for (const TensorSpec& spec : problem.outputs) {
    text += fmt::format("// {}: {}\n", names[next], describe(spec));
    parameters.push_back(fmt::format("{}* {}", c_type(spec.dtype).name, names[next++]));
  }
  parameters.push_back("int32_t num_threads");
  text += fmt::format("inline int {}(\n    {}) {{\n", function, fmt::join(parameters, ",\n    "));
  text += tensor_lines(problem.inputs, names.data(), "inputs");
  text += tensor_lines(problem.outputs, names.data() + problem.inputs.size(), "outputs");
  return text + fmt::format(
                    "  return ke_module_run(inputs, {}, outputs, {}, num_threads);\n}}\n\n",
                    problem.inputs.size(), problem.outputs.size());
}

}  // namespace

std::string module_name(const std::string& problem_name) {
  const std::string stem = std::filesystem::path(problem_name).filename().string();
  return "problem_" + identifier(stem);
}

std::string cpp_header(const Problem& problem, const std::vector<const Problem*>& further_cases) {
  std::string text = fmt::format(
      "// {} as {}. Written by kernelevolve; proved for exactly these shapes, types and\n"
      "// strides. Link with kernel.so, or compile kernel.cpp and module_shim.cpp with -I. beside\n"
      "// you.\n#pragma once\n\n#include <stdint.h>\n\n#include \"kernelevolve/kernel.h\"\n\n"
      "extern \"C\" int ke_module_run(const ke_tensor* inputs, int32_t input_count,\n"
      "                             ke_tensor* outputs, int32_t output_count,\n"
      "                             int32_t num_threads);\n\nnamespace kernelevolve {{\n\n",
      problem.name,
      further_cases.empty() ? "one function" : "functions, one for each shape case");
  text +=
      "// Every pointer must be aligned to 64 bytes; outputs are written whole and may not\n"
      "// overlap anything else. 16-bit floating types are passed as their bits. Returns 0 when\n"
      "// the outputs hold the result. Safe to call from many threads; calls run one at a time.\n"
      "//\n";
  text += function_of(problem, module_name(problem.name));
  for (const Problem* one : further_cases) {
    const std::string name = fmt::format("{}_case{}", module_name(problem.name), one->shape_case);
    text += fmt::format("// {} for other shapes.\n//\n", module_name(problem.name)) +
            function_of(*one, name);
  }
  return text + "}  // namespace kernelevolve\n";
}

namespace {

std::string figures_text(const Evaluation& evaluation) {
  if (!evaluation.measurement) return "It was proved right and not timed.\n";
  const Measurement& m = *evaluation.measurement;
  const auto line = [](const char* what, const std::optional<int64_t>& ns) {
    if (!ns) return fmt::format("| {} | not measured |\n", what);
    return fmt::format("| {} | {:.2f} us |\n", what, static_cast<double>(*ns) / 1e3);
  };
  std::string text = "| | cold median of one call |\n|---|---|\n";
  text += line("this kernel", m.time_ns);
  text += line("PyTorch eager", m.eager_median_ns);
  text += line("torch.compile", m.compile_median_ns);
  text += fmt::format(
      "\nSpeed-up over the better of the two: {:.2f} (95 % interval {:.2f} to {:.2f}), "
      "{}.\n",
      m.speedup, m.speedup_low, m.speedup_high,
      evaluation.confirmed ? "confirmed with fresh seeds, processes and samples" : "not confirmed");
  if (!evaluation.cases.empty()) {
    text += "\nThese are geometric means over the shape cases:\n\n";
    for (const CaseResult& one : evaluation.cases) {
      text += fmt::format("- {}", one.shapes);
      if (one.measurement) {
        text += fmt::format(": {:.2f} us, {:.2f} times the better of the two",
                            static_cast<double>(one.measurement->time_ns) / 1e3,
                            one.measurement->speedup);
      }
      text += one.counted ? "\n" : ", not in the mean because nothing is computed\n";
    }
    text += "\n";
  }
  if (!evaluation.flags.empty()) {
    text += fmt::format("Flags of the judge: {}.\n", fmt::join(evaluation.flags, ", "));
  }
  return text;
}

}  // namespace

std::string readme(const ExportRequest& request, const std::string& module) {
  std::string text =
      fmt::format("# {}: a proved kernel for {}\n\n", request.problem.name, request.target);
  if (!module.empty()) {
    text += fmt::format(
        "Python, in place of the original `Model`:\n\n```python\nimport torch\n"
        "from {0} import ModelNew, get_init_inputs, get_inputs\n\n"
        "{2}model = ModelNew(*get_init_inputs())    # parameters and state_dict as in Model\n"
        "with torch.no_grad():\n    result = model(*get_inputs())\n```\n\n"
        "`python check.py` compares it with the original and times both. The kernel runs for the\n"
        "shapes, types, strides, constants and {1} in `manifest.json`; for anything else, "
        "and\n"
        "when gradients or autocast are on, the original runs and one warning says why.\n\n",
        std::filesystem::path(module).stem().string(), request.device ? "device" : "processor",
        request.device ? fmt::format("torch.set_default_device(\"{}\")\n", request.device->type)
                       : "");
  }
  if (!request.problem.draws.empty()) {
    text +=
        "`forward()` draws random numbers. `ModelNew` draws them by PyTorch's generator in the "
        "same\norder and hands them to the kernel; C++ callers hand in their own. Below, the "
        "kernel's time\nleaves the drawing out, PyTorch's does not.\n\n";
  }
  if (!request.device) {
    text += fmt::format(
        "C++:\n\n```\n#include \"kernel.hpp\"      // kernelevolve::{}(...)\n"
        "g++ -std=c++20 -I. caller.cpp kernel.so -Wl,-rpath,'$ORIGIN' -o caller\n```\n\n",
        module_name(request.problem.name));
  }
  text += figures_text(request.evaluation);
  text += fmt::format("\nProved under the precision contract `{}`; built by `{}` ({}).\n",
                      enum_name(request.precision), fmt::join(request.recipe.command, " "),
                      request.toolchain);
  return text;
}

}  // namespace ke::app
