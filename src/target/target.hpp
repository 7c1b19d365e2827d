// SPDX-License-Identifier: Apache-2.0
//
// The contract of a target: a hardware platform with the language its kernels are written in. A
// target is one folder, src/target/<name>/, whose target.cpp defines
// `extern const TargetInfo target_<name>`; CMake generates the registry.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/kernel_profile.hpp"
#include "domain/machine.hpp"
#include "ir/plan.hpp"
#include "target/tools.hpp"

namespace ke {

// One decision a schedule may hold for a kernel, with its legal values.
struct ScheduleChoice {
  std::string name;             // "vector_width", "block_m"
  std::vector<int64_t> values;  // legal, ascending
  int64_t preferred = 0;        // the cost model's pick, one of values
  std::string_view meaning = {};  // a few words for readers; static, may be empty
  // Where values differ in what is computed, not only in how fast: the one nearest to the truth.
  std::optional<int64_t> rounds_least = {};
};

// Whether it can be the name of a library as after -l: no path and no file.
constexpr bool is_library_name(std::string_view name) {
  constexpr std::string_view kGood =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.";
  return !name.empty() && name.find_first_not_of(kGood) == std::string_view::npos;
}

// What a build gives: a library that exports ke_launch, code for a device with its launch plan
// (device_package.hpp), or the source of a Python module that defines ModelNew.
enum class ArtifactKind : uint8_t { shared_library, device_package, python_module };

struct BuildRecipe {
  // argv; the placeholders {source}, {output}, {include} (the folder that holds
  // kernelevolve/kernel.h) and {self} (this program) are replaced wherever they occur in an
  // argument.
  std::vector<std::string> command;
  std::string source_name;  // "kernel.cpp"
  std::string output_name;  // "kernel.so"
  std::vector<std::string> libraries;  // asked of the linker, as after -l; the policy decides
  ArtifactKind artifact = ArtifactKind::shared_library;
  std::vector<std::string> visible;  // what the command reads beyond a toolchain's usual folders
};

// The first argument of this program when it serves as the compiler of the target that the second
// one names: see TargetInfo::compile.
inline constexpr const char* kCompileCommand = "__compile";

// The kernels of one shape case. Views: whoever prints keeps what they show.
struct CaseKernels {
  const ir::Program* program = nullptr;
  std::span<const ir::FusedKernel> kernels;
};

// Stateless and safe to call from many threads.
class Target {
 public:
  virtual ~Target() = default;

  // Every schedule decision that exists for this kernel on this machine. Empty when there is none.
  virtual std::vector<ScheduleChoice> choices(const ir::Program& program,
                                              const ir::FusedKernel& kernel,
                                              const MachineProfile& machine) const = 0;

  // Roofline estimate of one call of the kernel under its schedule, in nanoseconds.
  virtual double estimate_ns(const ir::Program& program, const ir::FusedKernel& kernel,
                             const MachineProfile& machine) const = 0;

  // The whole translation unit, to be read by people. With several shape cases: kernels for each,
  // and an entry that chooses by the inputs' shapes and fails for others. Errc::unavailable when
  // something cannot be printed for this target (the sentence says what).
  virtual Result<std::string> print_cases(std::span<const CaseKernels> cases,
                                          const MachineProfile& machine) const = 0;
  Result<std::string> print(const ir::Program& program, std::span<const ir::FusedKernel> kernels,
                            const MachineProfile& machine) const {
    const CaseKernels one{&program, kernels};
    return print_cases(std::span(&one, 1), machine);
  }

  // How a source is built, by whoever wrote it. Errc::unavailable when the toolchain is missing,
  // Errc::refused when a `// ke:flags` line asks for a flag outside the allow-list.
  virtual Result<BuildRecipe> recipe(std::string_view source) const = 0;

  // What a writer of sources must know beyond the kernel contract, as Markdown: the dialect, how to
  // use threads, flags that are allowed. For prompts and for people.
  virtual std::string guide() const { return {}; }

  // What tools say about a source of this target, without running it.
  virtual Result<KernelProfile> profile(std::string_view /*source*/, ToolRunner& /*tools*/) const {
    return Error{Errc::unavailable, "this target has no profiler"};
  }

  // Name and version of the toolchain, for cache keys and reports.
  virtual Result<std::string> toolchain() const = 0;
};

struct TargetInfo {
  std::string_view name;         // "x86"
  std::string_view dialect;      // "C++"
  std::string_view description;  // one line for `kernelevolve targets`
  std::unique_ptr<Target> (*make)();
  // The device that its kernels run on, by name, or why there is none here: a sentence. Null when
  // they run on this machine's processors.
  Result<std::string> (*device)() = nullptr;
  // A compiler inside this program, for recipes that call `{self} __compile <name> …`: gets what
  // follows the name, says what is wrong on stderr, returns an exit code. Null when there is none.
  int (*compile)(std::span<const std::string> arguments) = nullptr;
};

std::span<const TargetInfo* const> all_targets();      // sorted by name
const TargetInfo* find_target(std::string_view name);  // null when unknown

}  // namespace ke
