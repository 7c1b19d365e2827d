// SPDX-License-Identifier: Apache-2.0
#include "llm/tool_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.hpp"

namespace ke::llm {

namespace {

constexpr size_t kCallBytesMax = 4096;
constexpr size_t kWhatBytesMax = 500;

}  // namespace

Result<std::string> line_field(Fields& fields, const char* key) {
  std::string text = TRY(fields.get<std::string>(key));
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text.find_first_not_of(' ') == std::string::npos) {
    return Error{Errc::invalid, fmt::format("its '{}' is empty", key)};
  }
  if (text.size() > kWhatBytesMax) {
    return Error{Errc::invalid, fmt::format("its '{}' has {} bytes, and {} are allowed", key,
                                            text.size(), kWhatBytesMax)};
  }
  if (std::ranges::any_of(text, control)) {
    return Error{Errc::invalid, fmt::format("its '{}' is more than one line", key)};
  }
  return text;
}

Json encode(const ToolCall& call) {
  Json json{{"tool", enum_name(call.tool)}};
  if (call.tool == Tool::search) json["query"] = call.what;
  if (call.tool == Tool::read) json["path"] = call.what;
  if (call.tool == Tool::find) json[std::string(enum_name(call.by))] = call.what;
  return json;
}

Result<ToolCall> parse_tool_call(std::string_view text) {
  if (text.size() > kCallBytesMax) {
    return Error{Errc::invalid, fmt::format("it has {} bytes, and {} are allowed", text.size(),
                                            kCallBytesMax)};
  }
  const Json json = TRY(parse_json(text));
  Fields fields = TRY(Fields::of(json, "it"));
  const std::string name = TRY(fields.get<std::string>("tool"));
  const std::optional<Tool> tool = parse_enum<Tool>(name);
  if (!tool) {
    return Error{Errc::invalid, fmt::format("there is no such tool; the tools are {}",
                                            fmt::join(kEnumNames<Tool>, ", "))};
  }
  ToolCall call{.tool = *tool, .by = FindBy::text, .what = {}, .source = {}};
  if (*tool == Tool::search) call.what = TRY(line_field(fields, "query"));
  if (*tool == Tool::read) call.what = TRY(line_field(fields, "path"));
  if (*tool == Tool::find) {
    int given = 0;
    for (const FindBy by : {FindBy::text, FindBy::regex, FindBy::path}) {
      const std::string key(enum_name(by));
      if (fields.find(key.c_str()) == nullptr) continue;
      ++given;
      call.by = by;
      call.what = TRY(line_field(fields, key.c_str()));
    }
    if (given != 1) return Error{Errc::invalid, "find takes one of text, regex and path"};
  }
  if (!fields.finish()) {
    return Error{Errc::invalid, "it has a field that this tool does not take"};
  }
  return call;
}

}  // namespace ke::llm
