// SPDX-License-Identifier: Apache-2.0
//
// A careful reader of what a built library needs, imports and exports (ELF64 little endian, System
// V ABI). The file comes from a compiler that was fed hostile text, so every offset is checked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ke {

struct ElfSummary {
  std::vector<std::string> needed;   // DT_NEEDED, as written
  std::vector<std::string> imports;  // undefined dynamic symbols
  std::vector<std::string> exports;  // defined global or weak dynamic symbols
};

// Errc::invalid when it is not a shared library of that form.
Result<ElfSummary> summarize_elf(const std::filesystem::path& library);

}  // namespace ke
