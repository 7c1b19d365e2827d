// SPDX-License-Identifier: Apache-2.0
//
// What a model may ask for before it writes its kernel: one JSON object in an answer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"

namespace ke {
class Fields;
}

namespace ke::llm {

enum class Tool : uint8_t { compile, profile, search, find, read };
enum class FindBy : uint8_t { text, regex, path };

struct ToolCall {
  Tool tool = Tool::search;
  FindBy by = FindBy::text;  // of find
  std::string what;          // the query, text, pattern or path; empty for compile and profile
  std::string source;        // of compile and profile: the kernel, which stands beside the JSON
  bool operator==(const ToolCall&) const = default;
};

inline bool takes_source(Tool tool) { return tool == Tool::compile || tool == Tool::profile; }

// A field of one line, not empty and of at most 500 bytes; Errc::invalid with what is wrong.
Result<std::string> line_field(Fields& fields, const char* key);

// As a model writes it: the source is not part of it.
Json encode(const ToolCall& call);
// Errc::invalid with what is wrong. The text is a model's: hostile, and of any length.
Result<ToolCall> parse_tool_call(std::string_view json);

}  // namespace ke::llm

template <>
inline constexpr std::array<std::string_view, 5> ke::kEnumNames<ke::llm::Tool>{
    "compile", "profile", "search", "find", "read"};
template <>
inline constexpr std::array<std::string_view, 3> ke::kEnumNames<ke::llm::FindBy>{"text", "regex",
                                                                                 "path"};
