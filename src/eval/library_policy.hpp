// SPDX-License-Identifier: Apache-2.0
//
// Which libraries a kernel may use. The room where it runs shows no others, and the built artifact
// and what it has mapped in the end are looked at, never its text.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "base/result.hpp"
#include "eval/elf.hpp"

namespace ke {

// none: the language's own run time alone. listed: also the named libraries, with what those need.
// any: whatever the machine has.
struct LibraryPolicy {
  enum class Kind : uint8_t { none, listed, any };
  Kind kind = Kind::none;
  std::vector<std::string> listed;  // as after -l: "openblas" for libopenblas.so.0

  std::string to_string() const;  // what parse_library_policy takes
  // Whether a source may ask the linker for it.
  bool may_link(std::string_view name) const;
};

// "none", "any", or names separated by commas. Errc::invalid for a name that is no library's name,
// Errc::not_found when the machine has no such library.
Result<LibraryPolicy> parse_library_policy(const std::string& text);

// The shared libraries that a room for kernels shows, as absolute paths. Absent: all there are.
std::optional<std::vector<std::string>> visible_libraries(const LibraryPolicy& policy);

struct LibraryFinding {
  std::optional<std::string> violation;  // one sentence
  std::string kernel_class = "own";      // own, or mixed when foreign libraries are needed
};

LibraryFinding check_libraries(const ElfSummary& library, const LibraryPolicy& policy);

// The same for what a process has loaded when it ends, beyond what it had before the kernel.
LibraryFinding check_loaded(const std::set<std::string>& before, const std::set<std::string>& after,
                            const LibraryPolicy& policy);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::LibraryPolicy::Kind>{
    "none", "listed", "any"};
