// SPDX-License-Identifier: Apache-2.0
#include "target/triton/launcher.hpp"

#include <fmt/format.h>

#include <map>

#include "base/assert.hpp"
#include "target/triton/kernel.hpp"
#include "target/triton/python.hpp"

namespace ke::triton {
namespace {

using ir::TensorId;

class LauncherPrinter {
 public:
  LauncherPrinter(const ir::Program& program, const std::string& function)
      : program_(program), function_(function) {
    for (const TensorId id : program.inputs) {
      variables_[id] = names_.fresh(program.tensor(id).name);
      parameters_.push_back(variables_[id]);
    }
    if (parameters_.empty()) parameters_.emplace_back("neighbour");  // for its device
  }

  void allocate(TensorId id, const std::vector<int64_t>& shape) {
    if (variables_.contains(id)) return;
    const ir::Tensor& tensor = program_.tensor(id);
    variables_[id] = names_.fresh(tensor.name);
    body_ += fmt::format("{} = torch.empty({}, dtype={}, device={}.device)\n", variables_[id],
                         tuple_text(shape), dtype_text(tensor.dtype), parameters_.front());
  }

  void launch(const ir::FusedKernel& kernel) {
    const std::string name = fmt::format("{}_{}", function_, kernel.name);
    const Result<KernelText> text = print_kernel(program_, kernel, name);
    KE_ASSERT(text);
    kernels_ += text->function + "\n";
    std::vector<std::string> given;
    for (const TensorId id : parameters_of(kernel)) {
      allocate(id, program_.tensor(id).shape);
      given.push_back(variables_.at(id));
    }
    std::string origins;
    for (const ir::FusedStage& stage : kernel.stages) {
      origins += (origins.empty() ? "" : "; ") + stage.origin;
    }
    body_ += comment(origins + ": " + text->schedule + ".");
    body_ += fmt::format("{}[{}]({}, {}, num_warps={})\n", name, text->grid, joined(given),
                         text->constants, text->warps);
  }

  std::string finish(const std::vector<std::vector<int64_t>>& shapes) {
    std::vector<std::string> made;
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      made.push_back(variables_.at(program_.outputs[o]));
      const bool given = program_.tensor(program_.outputs[o]).role == ir::Role::input;
      if (given) made.back() += fmt::format(".reshape({})", tuple_text(shapes[o]));
    }
    body_ += fmt::format("return {}{}\n", joined(made), made.size() == 1 ? "," : "");
    return fmt::format("{}\ndef {}({}):\n{}\n", kernels_, function_, joined(parameters_),
                       indented(body_, 4));
  }

 private:
  const ir::Program& program_;
  const std::string& function_;
  Names names_;
  std::map<TensorId, std::string> variables_;
  std::vector<std::string> parameters_;
  std::string kernels_, body_;
};

}  // namespace

std::string print_launcher(const ir::Program& program, std::span<const ir::FusedKernel> kernels,
                           const std::vector<std::vector<int64_t>>& shapes,
                           const std::string& function) {
  LauncherPrinter printer(program, function);
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    printer.allocate(program.outputs[o], shapes[o]);
  }
  for (const ir::FusedKernel& kernel : kernels) printer.launch(kernel);
  return printer.finish(shapes);
}

}  // namespace ke::triton
