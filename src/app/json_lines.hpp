// SPDX-License-Identifier: Apache-2.0
//
// Files of one JSON value a line, to which rows are appended.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace ke::app {

// Hands each line's value to `take`, which returns a Result<void>; blank lines are left out. Errors
// name the line.
template <class Take>
Result<void> each_json_line(std::string_view text, Take take) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto read = [&]() -> Result<void> { return take(TRY(parse_json(line))); };
    TRY(read().context(fmt::format("line {}", number)));
  }
  return {};
}

// Without a last line that a kill cut short.
inline std::string_view whole_lines(std::string_view text) {
  const size_t end = text.find_last_of('\n');
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace ke::app
