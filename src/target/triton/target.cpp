// SPDX-License-Identifier: Apache-2.0
//
// The triton target: Python modules with ModelNew, as KernelBench has them. Nothing is compiled
// before the module runs; the build checks that it parses.
#include "target/target.hpp"

#include <fmt/format.h>

#include "target/model_printer.hpp"
#include "target/nvidia_gpu.hpp"
#include "target/triton/model.hpp"
#include "target/triton/toolchain.hpp"

namespace ke {
namespace {

constexpr const char* kParse =
    "import sys\n"
    "source = open(sys.argv[1], 'rb').read()\n"
    "try:\n"
    "    compile(source, 'kernel.py', 'exec')\n"
    "except (SyntaxError, ValueError) as error:\n"
    "    line = getattr(error, 'lineno', 0)\n"
    "    sys.exit(f'kernel.py:{line}: error: {error.args[0]}')\n"
    "open(sys.argv[2], 'wb').write(source)\n";

class TritonTarget final : public Target, public ModelPrinter {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program&, const ir::FusedKernel&,
                                      const MachineProfile&) const override {
    return {};
  }
  double estimate_ns(const ir::Program&, const ir::FusedKernel&,
                     const MachineProfile&) const override {
    return 0;
  }
  Result<std::string> print_cases(std::span<const CaseKernels>,
                                  const MachineProfile&) const override {
    return Error{Errc::unavailable, "this target prints whole models, from their graphs"};
  }

  std::vector<ScheduleChoice> model_choices(std::span<const Problem* const> cases) const override {
    return triton::choices_of(cases);
  }
  Result<std::string> print_model(std::span<const Problem* const> cases,
                                  const ir::Schedule& schedule) const override {
    return triton::print_module(cases, schedule);
  }

  Result<BuildRecipe> recipe(std::string_view) const override {
    const triton::PythonToolchain python = TRY(triton::find_python());
    BuildRecipe recipe{
        {python.interpreter.string(), "-I", "-S", "-c", kParse, "{source}", "{output}"},
        "kernel.py",
        "module.py",
        {}};
    recipe.artifact = ArtifactKind::python_module;
    recipe.visible = python.visible;
    return recipe;
  }

  std::string guide() const override {
    return "A Python module that defines `class ModelNew(torch.nn.Module)`, made and called as the"
           "\nproblem's Model is. Its parameters and buffers must have the names of the Model's; "
           "they"
           "\nare set before the first call, to tensors that may only be read, and their values may"
           "\nchange between calls. `forward` returns plain tensors. Random numbers that the Model"
           "\ndraws come as further arguments, in order. Triton kernels (`@triton.jit`) and the"
           "\noperators of PyTorch may be used, and no other process or file.";
  }

  Result<std::string> toolchain() const override {
    const triton::PythonToolchain python = TRY(triton::find_python());
    std::string missing;
    if (python.torch.empty()) missing = "PyTorch";
    if (python.triton.empty()) missing += missing.empty() ? "Triton" : " and Triton";
    if (!missing.empty()) {
      return Error{Errc::unavailable,
                   fmt::format("{} lacks {}; install what is missing, or name another Python in "
                               "KE_PYTHON",
                               python.interpreter.string(), missing)};
    }
    return fmt::format("torch {}, triton {}", python.torch, python.triton);
  }
};

std::unique_ptr<Target> make_triton() { return std::make_unique<TritonTarget>(); }

Result<std::string> triton_device() {
  const target::Gpu gpu = TRY(target::find_gpu());
  return fmt::format("{}, driver {}", gpu.name, gpu.driver);
}

}  // namespace

extern const TargetInfo target_triton;
const TargetInfo target_triton{"triton", "Python",
                               "NVIDIA GPUs, Python modules of PyTorch and Triton", make_triton,
                               triton_device};

}  // namespace ke
