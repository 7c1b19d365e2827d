// SPDX-License-Identifier: Apache-2.0
#include "eval/library_policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "target/target.hpp"

namespace ke {
namespace {

namespace fs = std::filesystem;

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

// Where the loader looks by itself (ld.so(8)), each folder once however it is linked.
std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  std::set<fs::path> seen;
  const auto add = [&](const fs::path& folder) {
    std::error_code error;
    const fs::path real = fs::canonical(folder, error);
    if (!error && fs::is_directory(real, error) && seen.insert(real).second) {
      folders.push_back(folder);
    }
  };
  for (const char* root : {"/usr/lib", "/lib"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
      if (entry.path().filename().string().find("-linux-gnu") != std::string::npos) {
        add(entry.path());
      }
    }
  }
  for (const char* folder : {"/usr/lib64", "/lib64", "/usr/lib", "/lib"}) add(folder);
  return folders;
}

// lib<name>.so with whatever version the machine has.
bool is_version_of(std::string_view file, std::string_view name) {
  const std::string stem = fmt::format("lib{}.so", name);
  return file == stem || file.starts_with(stem + ".");
}

// Shared libraries by name, and what they need in turn.
class Closure {
 public:
  void add_file(std::string_view name) {
    for (const fs::path& folder : folders_) {
      std::error_code error;
      const fs::path file = folder / name;
      if (fs::is_regular_file(file, error)) add(file);
    }
  }
  void add_listed(std::string_view name) {
    for (const fs::path& folder : folders_) {
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (is_version_of(entry.path().filename().string(), name)) add(entry.path());
      }
    }
  }
  const std::set<std::string>& files() const { return files_; }

 private:
  void add(const fs::path& file) {
    const Result<ElfSummary> elf = summarize_elf(file);
    if (!elf) return;  // a linker script, or another machine's
    if (!files_.insert(file.string()).second) return;
    for (const std::string& needed : elf->needed) add_file(needed);
  }

  std::vector<fs::path> folders_ = library_folders();
  std::set<std::string> files_;
};

std::set<std::string> listed_files(const LibraryPolicy& policy) {
  Closure closure;
  for (const std::string& name : policy.listed) closure.add_listed(name);
  return closure.files();
}

// Whether the policy admits a shared library, by the name under which it is loaded.
class Admitted {
 public:
  explicit Admitted(const LibraryPolicy& policy) : any_(policy.kind == LibraryPolicy::Kind::any) {
    if (policy.kind != LibraryPolicy::Kind::listed) return;
    for (const std::string& file : listed_files(policy)) {
      names_.insert(fs::path(file).filename());
      std::error_code error;
      names_.insert(fs::canonical(file, error).filename());
    }
  }
  bool has(const std::string& name) const { return any_ || names_.contains(name); }

 private:
  bool any_;
  std::set<std::string> names_;
};

}  // namespace

std::string LibraryPolicy::to_string() const {
  return kind == Kind::listed ? fmt::format("{}", fmt::join(listed, ","))
                              : std::string(enum_name(kind));
}

bool LibraryPolicy::may_link(std::string_view name) const {
  return kind == Kind::any || std::find(listed.begin(), listed.end(), name) != listed.end();
}

Result<LibraryPolicy> parse_library_policy(const std::string& text) {
  using Kind = LibraryPolicy::Kind;
  if (text == "none") return LibraryPolicy{};
  if (text == "any") return LibraryPolicy{Kind::any, {}};
  LibraryPolicy policy{Kind::listed, {}};
  for (size_t start = 0; start <= text.size();) {
    const size_t comma = std::min(text.find(',', start), text.size());
    const std::string name = text.substr(start, comma - start);
    start = comma + 1;
    if (!is_library_name(name)) {
      return Error{Errc::invalid, fmt::format("'{}' is not the name of a library; give none, any, "
                                              "or names as after -l, such as openblas,mvec.",
                                              name)};
    }
    policy.listed.push_back(name);
    if (listed_files({Kind::listed, {name}}).empty()) {
      return Error{Errc::invalid, fmt::format("this machine has no shared library '{0}' "
                                              "(lib{0}.so); install it or leave it out.",
                                              name)};
    }
  }
  return policy;
}

std::optional<std::vector<std::string>> visible_libraries(const LibraryPolicy& policy) {
  if (policy.kind == LibraryPolicy::Kind::any) return std::nullopt;
  Closure closure;
  for (const std::string_view name : kRunTime) closure.add_file(name);
  for (const std::string& name : policy.listed) closure.add_listed(name);
  return std::vector(closure.files().begin(), closure.files().end());
}

LibraryFinding check_libraries(const ElfSummary& library, const LibraryPolicy& policy) {
  LibraryFinding finding;
  const Admitted admitted(policy);
  for (const std::string& name : library.needed) {
    if (among(kRunTime, name)) continue;
    finding.kernel_class = "mixed";
    if (!admitted.has(name) && !finding.violation) {
      finding.violation = "it needs the library " + name + ", which the library policy forbids";
    }
  }
  for (const std::string& name : library.imports) {
    if (!among(kLoaders, name)) continue;
    finding.kernel_class = "mixed";
    if (policy.kind == LibraryPolicy::Kind::none && !finding.violation) {
      finding.violation = "it calls " + name + ", which the library policy forbids";
    }
  }
  return finding;
}

LibraryFinding check_loaded(const std::set<std::string>& before, const std::set<std::string>& after,
                            const LibraryPolicy& policy) {
  LibraryFinding finding;
  std::optional<Admitted> admitted;  // reading libraries is left until there is something to judge
  for (const std::string& name : after) {
    if (before.contains(name) || among(kRunTime, name)) continue;
    finding.kernel_class = "mixed";
    if (!admitted) admitted.emplace(policy);
    if (!admitted->has(name) && !finding.violation) {
      finding.violation = "it loaded " + name + ", which the library policy forbids";
    }
  }
  return finding;
}

}  // namespace ke
