// SPDX-License-Identifier: Apache-2.0
#include "eval/library_policy.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace ke {
namespace {

// The C and C++ run time and OpenMP: what a compiler adds by itself.
constexpr std::array<std::string_view, 11> kRunTime{"libc.so.6",
                                                    "libm.so.6",
                                                    "libmvec.so.1",
                                                    "libstdc++.so.6",
                                                    "libgcc_s.so.1",
                                                    "libgomp.so.1",
                                                    "libomp.so.5",
                                                    "libpthread.so.0",
                                                    "ld-linux-x86-64.so.2",
                                                    "ld-linux-riscv64-lp64d.so.1",
                                                    "libatomic.so.1"};

// Ways to other code that the list of needed libraries does not show.
constexpr std::array<std::string_view, 12> kLoaders{
    "dlopen", "dlmopen", "dlsym",  "dlvsym", "__libc_dlopen_mode", "execve",
    "execvp", "execl",   "system", "popen",  "posix_spawn",        "posix_spawnp"};

template <size_t n>
bool among(const std::array<std::string_view, n>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

LibraryFinding check_libraries(const ElfSummary& library, LibraryPolicy policy) {
  LibraryFinding finding;
  for (const std::string& name : library.needed) {
    if (among(kRunTime, name)) continue;
    finding.kernel_class = "mixed";
    if (policy == LibraryPolicy::none && !finding.violation) {
      finding.violation = "it needs the library " + name + ", which the library policy forbids";
    }
  }
  for (const std::string& name : library.imports) {
    if (!among(kLoaders, name)) continue;
    finding.kernel_class = "mixed";
    if (policy == LibraryPolicy::none && !finding.violation) {
      finding.violation = "it calls " + name + ", which the library policy forbids";
    }
  }
  return finding;
}

LibraryFinding check_loaded(const std::set<std::string>& before, const std::set<std::string>& after,
                            LibraryPolicy policy) {
  LibraryFinding finding;
  for (const std::string& name : after) {
    if (before.contains(name) || among(kRunTime, name)) continue;
    finding.kernel_class = "mixed";
    if (policy == LibraryPolicy::none && !finding.violation) {
      finding.violation = "it loaded " + name + ", which the library policy forbids";
    }
  }
  return finding;
}

}  // namespace ke
