// SPDX-License-Identifier: Apache-2.0
//
// The x86 target: kernels in C++ for g++, one shared library each.
#include "target/target.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/assert.hpp"
#include "target/x86/decisions.hpp"
#include "target/x86/profile.hpp"
#include "target/x86/skeleton.hpp"

namespace ke {
namespace {

using x86::SkeletonPrinter;

// What a source may ask for in a `// ke:flags` line.
constexpr std::array<std::string_view, 19> kAllowedFlags = {"-ffast-math",
                                                            "-fno-fast-math",
                                                            "-fno-finite-math-only",
                                                            "-fassociative-math",
                                                            "-freciprocal-math",
                                                            "-fno-signed-zeros",
                                                            "-funroll-loops",
                                                            "-fno-tree-vectorize",
                                                            "-ftree-vectorize",
                                                            "-ffp-contract=fast",
                                                            "-ffp-contract=off",
                                                            "-O1",
                                                            "-O2",
                                                            "-O3",
                                                            "-fno-strict-aliasing",
                                                            "-mprefer-vector-width=256",
                                                            "-mprefer-vector-width=512",
                                                            "-fno-unroll-loops",
                                                            "-fopenmp-simd"};

const SkeletonPrinter& skeleton_of(ir::Skeleton skeleton) {
  switch (skeleton) {
    case ir::Skeleton::map:
      return x86::map_skeleton();
    case ir::Skeleton::reduce:
      return x86::reduce_skeleton();
    case ir::Skeleton::contract:
      return x86::contract_skeleton();
    case ir::Skeleton::scan:
      return x86::scan_skeleton();
  }
  KE_ASSERT(false);
}

// The words of every `// ke:flags` line of a source.
std::vector<std::string> flags_of(std::string_view source) {
  std::vector<std::string> flags;
  constexpr std::string_view kMarker = "// ke:flags";
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::string_view line = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    if (!line.starts_with(kMarker)) continue;
    line.remove_prefix(kMarker.size());
    while (!line.empty()) {
      const size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
      line.remove_prefix(begin);
      const size_t length = std::min(line.find_first_of(" \t\r"), line.size());
      if (length > 0) flags.emplace_back(line.substr(0, length));
      line.remove_prefix(length);
    }
  }
  return flags;
}

// "openblas" for -lopenblas. Names alone: a path or a file (-l:name) could be anything.
std::optional<std::string> library_of(std::string_view flag) {
  if (!flag.starts_with("-l") || !is_library_name(flag.substr(2))) return std::nullopt;
  return std::string(flag.substr(2));
}

// The first line that `command` prints.
Result<std::string> first_line_of(const char* command) {
  FILE* pipe = popen(command, "r");
  if (pipe == nullptr) return Error{Errc::unavailable, "no process can be started"};
  char buffer[256] = {};
  const bool read = fgets(buffer, sizeof buffer, pipe) != nullptr;
  const int status = pclose(pipe);
  if (!read || status != 0) {
    return Error{Errc::unavailable, "g++ was not found: install it, or put it on the PATH"};
  }
  std::string line(buffer);
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line;
}

class X86Target final : public Target {
 public:
  std::vector<ScheduleChoice> choices(const ir::Program& program, const ir::FusedKernel& kernel,
                                      const MachineProfile& machine) const override {
    auto choices = skeleton_of(kernel.skeleton).choices(program, kernel, machine);
    for (ScheduleChoice& choice : choices) choice.meaning = x86::meaning_of(choice.name);
    return choices;
  }

  double estimate_ns(const ir::Program& program, const ir::FusedKernel& kernel,
                     const MachineProfile& machine) const override {
    return skeleton_of(kernel.skeleton).estimate_ns(program, kernel, machine);
  }

  Result<std::string> print_cases(std::span<const CaseKernels> cases,
                                  const MachineProfile& machine) const override {
    std::vector<x86::PrintedCase> all;
    for (const CaseKernels& one : cases) {
      all.push_back({one.program, TRY(printed(one, machine))});
    }
    if (all.size() == 1) return x86::assemble(*all[0].program, all[0].kernels);
    return x86::assemble_cases(all);
  }

  Result<BuildRecipe> recipe(std::string_view source) const override {
    BuildRecipe recipe{{"g++", "-std=c++20", "-O3", "-march=native", "-fopenmp", "-fno-math-errno",
                        "-fno-trapping-math", "-fwrapv", "-ffp-contract=fast", "-Wno-psabi",
                        "-shared", "-fPIC", "-I{include}"},
                       "kernel.cpp",
                       "kernel.so",
                       {}};
    for (const std::string& flag : flags_of(source)) {
      if (const auto library = library_of(flag)) {
        recipe.libraries.push_back(*library);
        continue;
      }
      if (std::find(kAllowedFlags.begin(), kAllowedFlags.end(), flag) == kAllowedFlags.end()) {
        return Error{Errc::refused,
                     fmt::format("the flag {} is not among those a source may ask for", flag)};
      }
      recipe.command.push_back(flag);
    }
    for (const char* last : {"{source}", "-o", "{output}", "-Wl,--as-needed"}) {
      recipe.command.emplace_back(last);
    }
    for (const std::string& name : recipe.libraries) recipe.command.push_back("-l" + name);
    recipe.command.emplace_back("-lm");
    return recipe;
  }

  std::string guide() const override {
    return fmt::format(
        "C++20 for g++ on x86-64. <immintrin.h>, GCC's vector extensions and builtins, and the\n"
        "standard library's headers are there. Threads: context->parallel_for(context->pool, n, "
        "body,\narg) with tasks of equal size, or OpenMP. A line that begins with `// ke:flags` "
        "adds compiler\nflags; allowed are {}.",
        fmt::join(kAllowedFlags, " "));
  }

  Result<KernelProfile> profile(std::string_view source, ToolRunner& tools) const override {
    return x86::profile(TRY(recipe(source)), tools);
  }

  Result<std::string> toolchain() const override {
    return first_line_of("g++ --version 2>/dev/null");
  }

 private:
  static Result<std::vector<x86::PrintedKernel>> printed(const CaseKernels& one,
                                                         const MachineProfile& machine) {
    std::vector<x86::PrintedKernel> kernels;
    for (const ir::FusedKernel& kernel : one.kernels) {
      x86::PrintContext context{*one.program, machine, kernel};
      kernels.push_back({&kernel, TRY(skeleton_of(kernel.skeleton).print(context))});
    }
    return kernels;
  }
};

std::unique_ptr<Target> make_x86() { return std::make_unique<X86Target>(); }

}  // namespace

extern const TargetInfo target_x86;
const TargetInfo target_x86{"x86", "C++", "x86-64 processors, C++ compiled by g++", make_x86};

}  // namespace ke
