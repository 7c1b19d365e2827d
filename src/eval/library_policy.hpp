// SPDX-License-Identifier: Apache-2.0
//
// Which libraries a kernel may use, checked on the built artifact, never on its text.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/enum_names.hpp"
#include "eval/elf.hpp"

namespace ke {

// none: the language's own run time alone. any: whatever the room shows.
enum class LibraryPolicy : uint8_t { none, any };

struct LibraryFinding {
  std::optional<std::string> violation;  // one sentence
  std::string kernel_class = "own";      // own, or mixed when foreign libraries are needed
};

LibraryFinding check_libraries(const ElfSummary& library, LibraryPolicy policy);

// The same for what a process has loaded when it ends, beyond what it had before the kernel.
LibraryFinding check_loaded(const std::set<std::string>& before, const std::set<std::string>& after,
                            LibraryPolicy policy);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::LibraryPolicy>{"none", "any"};
