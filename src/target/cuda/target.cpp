// SPDX-License-Identifier: Apache-2.0
//
// The cuda target: device code and launch lines, compiled to a cubin by NVRTC.
#include "target/target.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/digest.hpp"
#include "embedded/ke_device_header.hpp"
#include "target/cuda/compile.hpp"
#include "target/cuda/decisions.hpp"
#include "target/cuda/skeleton.hpp"
#include "target/nvidia_gpu.hpp"

namespace ke {
namespace {

using cuda::SkeletonPrinter;

// Where no device says otherwise.
constexpr std::string_view kDefaultArchitecture = "sm_90a";

const SkeletonPrinter& printer_of(ir::Skeleton skeleton) {
  switch (skeleton) {
    case ir::Skeleton::map:
      return cuda::map_skeleton();
    case ir::Skeleton::reduce:
      return cuda::reduce_skeleton();
    case ir::Skeleton::contract:
      return cuda::contract_skeleton();
    case ir::Skeleton::scan:
      return cuda::scan_skeleton();
  }
  KE_ASSERT(false);
}

// The words of every `// ke:flags` line of a source.
std::vector<std::string> asked_flags(std::string_view source) {
  std::vector<std::string> flags;
  constexpr std::string_view kMarker = "// ke:flags", kBlanks = " \t\r";
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    if (!line.starts_with(kMarker)) continue;
    line.remove_prefix(kMarker.size());
    while (true) {
      line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
      if (line.empty()) break;
      const size_t length = std::min(line.find_first_of(kBlanks), line.size());
      flags.emplace_back(line.substr(0, length));
      line.remove_prefix(length);
    }
  }
  return flags;
}

class CudaTarget final : public Target {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program& program, const ir::FusedKernel& kernel,
                                      const MachineProfile&) const override {
    auto choices = printer_of(kernel.skeleton).choices(program, kernel, device_);
    for (ScheduleChoice& choice : choices) choice.meaning = cuda::meaning_of(choice.name);
    return choices;
  }

  double estimate_ns(const ir::Program& program, const ir::FusedKernel& kernel,
                     const MachineProfile&) const override {
    return printer_of(kernel.skeleton).estimate_ns(program, kernel, device_);
  }

  Result<std::string> print_cases(std::span<const CaseKernels> cases,
                                  const MachineProfile&) const override {
    std::vector<cuda::PrintedCase> all;
    for (size_t i = 0; i < cases.size(); ++i) {
      // Names of kernels are the launch lines' and so differ between cases.
      const std::string prefix = cases.size() > 1 ? fmt::format("case{}_", i) : "";
      all.push_back({cases[i].program, TRY(printed(cases[i], prefix))});
    }
    return cuda::assemble(all);
  }

  Result<BuildRecipe> recipe(std::string_view source) const override {
    const std::filesystem::path nvrtc = TRY(cuda::find_nvrtc());
    const auto gpu = target::find_gpu();
    const std::string architecture = gpu ? gpu->architecture() : std::string(kDefaultArchitecture);
    BuildRecipe recipe{
        {"{self}", kCompileCommand, "cuda", "--nvrtc", nvrtc.string(), "--arch", architecture},
        "kernel.cu",
        "kernel.package",
        {}};
    recipe.artifact = ArtifactKind::device_package;
    recipe.visible = {nvrtc.parent_path().string()};
    for (const std::string& flag : asked_flags(source)) {
      if (!cuda::is_allowed_flag(flag)) {
        return Error{Errc::refused,
                     fmt::format("the flag {} is not among those a source may ask for", flag)};
      }
      recipe.command.emplace_back("--flag");
      recipe.command.push_back(flag);
    }
    recipe.command.emplace_back("{source}");
    recipe.command.emplace_back("{output}");
    return recipe;
  }

  std::string guide() const override {
    return fmt::format(
        "CUDA C++17 device code, compiled by NVRTC alone: no system or vendor headers but "
        "<stdint.h>"
        "\nand \"kernelevolve/device.h\" (functions ke_…: 16-bit floats, wide copies, joins across"
        "\nthreads). No host code: kernels are `extern \"C\" __global__`, and each launch is a "
        "line\n"
        "\n    // ke:launch NAME grid=(ceil_div(n, 256)) block=(256) shared=0 args=(in0, out0, n)\n"
        "\nin order, with integer expressions over in0.size, in0[1], in0.ndim (out0 alike) and n, "
        "the"
        "\nelements of the first output; `// ke:scratch BYTES` asks for scratch, handed over as"
        "\nscratch+OFFSET; integers arrive in 64 bits. A line that begins with `// ke:flags` adds"
        "\ncompiler flags; allowed are {}.",
        cuda::allowed_flags());
  }

  Result<KernelProfile> profile(std::string_view source, ToolRunner& tools) const override {
    const std::string log = TRY(tools.run(TRY(recipe(source)).command));
    KernelProfile profile;
    int64_t spilled = 0;
    for (const target::KernelResources& kernel : cuda::resources_of(log)) {
      spilled += kernel.spill_bytes;
      profile.compiler_remarks.push_back(fmt::format(
          "{}: {} registers, {} bytes spilled, {} bytes of stack a thread; {} bytes of static "
          "shared memory a block",
          kernel.kernel, kernel.registers, kernel.spill_bytes, kernel.stack_bytes,
          kernel.shared_bytes));
    }
    if (profile.compiler_remarks.empty()) {
      return Error{Errc::unavailable, "the assembler says nothing of this source"};
    }
    if (spilled == 0) profile.spills = 0;
    const std::string no_loop = "the assembler reports on whole kernels, not on a loop";
    if (spilled != 0) profile.missing["spills"] = no_loop;
    for (const char* metric :
         {"vector_instructions", "scalar_instructions", "cycles_per_iteration", "bottleneck"}) {
      profile.missing[metric] = no_loop;
    }
    return profile;
  }

  Result<std::string> toolchain() const override {
    const auto nvrtc = TRY(cuda::Nvrtc::load(TRY(cuda::find_nvrtc())));
    // The headers are part of every printed source.
    std::string headers;
    for (const auto& file : embedded::ke_device_header_files()) headers += file.contents;
    return fmt::format("NVRTC {}, device.h {}", nvrtc.version(), digest_of(headers).short_hex());
  }

 private:
  Result<std::vector<cuda::PrintedKernel>> printed(const CaseKernels& one,
                                                   const std::string& prefix) const {
    std::vector<cuda::PrintedKernel> all;
    for (const ir::FusedKernel& kernel : one.kernels) {
      ir::FusedKernel named = kernel;
      named.name = prefix + kernel.name;
      cuda::PrintContext context{*one.program, named};
      for (const ir::FusedKernel& other : one.kernels) {
        if (&other != &kernel) context.elsewhere.insert(other.reads.begin(), other.reads.end());
      }
      cuda::KernelCode code = TRY(printer_of(kernel.skeleton).print(context, device_));
      ir::FusedKernel shown = code.rewritten.value_or(named);
      all.push_back({std::move(shown), std::move(code)});
    }
    return all;
  }

  cuda::Device device_;
};

std::unique_ptr<Target> make_cuda() { return std::make_unique<CudaTarget>(); }

Result<std::string> cuda_device() {
  const target::Gpu gpu = TRY(target::find_gpu());
  return fmt::format("{}, driver {}", gpu.name, gpu.driver);
}

}  // namespace

extern const TargetInfo target_cuda;
const TargetInfo target_cuda{"cuda",    "CUDA",      "NVIDIA GPUs, device code compiled by NVRTC",
                             make_cuda, cuda_device, cuda::compile_command};

}  // namespace ke
