// SPDX-License-Identifier: Apache-2.0
#include "propose/model/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/assert.hpp"
#include "base/json.hpp"

namespace ke::model {
namespace {

bool is_path_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte >= 0x80 ||
         std::string_view("._-+~@").find(c) != std::string_view::npos;
}

// Where the path that begins with the slash at `at` ends; `at` when there is none.
size_t path_end(std::string_view text, size_t at) {
  const bool inside = at > 0 && (is_path_character(text[at - 1]) || text[at - 1] == '/');
  if (inside) return at;
  size_t end = at, parts = 0;
  while (end < text.size() && text[end] == '/') {
    size_t next = end + 1;
    while (next < text.size() && is_path_character(text[next])) ++next;
    if (next == end + 1) break;
    ++parts;
    end = next;
  }
  return parts >= 2 ? end : at;
}

size_t longest_run_of_backticks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// Not in the middle of a character of UTF-8.
size_t cut_before(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
    --at;
  }
  return at;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  // The JSON writer replaces what is not UTF-8; reading it back cannot fail.
  const Result<Json> round = parse_json(dump_json(Json(std::string(text))));
  KE_ASSERT(round.has_value());
  std::string out;
  for (const char c : round->get_ref<const std::string&>()) {
    const bool low = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    if (!low && c != 0x7f) {
      out += c;
    } else if (c != '\r') {
      out += "\xEF\xBF\xBD";
    }
  }
  return out;
}

std::string without_paths(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = text[i] == '/' ? path_end(text, i) : i;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view path = text.substr(i, end - i);
    out += path.substr(path.rfind('/') + 1);
    i = end;
  }
  return out;
}

std::string one_line(std::string_view text, size_t bytes_max) {
  std::string line;
  for (char c : without_paths(as_utf8(text))) {
    if (c == '\n' || c == '\t') c = ' ';
    if (c == '`') c = '\'';
    if (c == ' ' && (line.empty() || line.back() == ' ')) continue;
    line += c;
  }
  if (line.size() > bytes_max) line = line.substr(0, cut_before(line, bytes_max)) + "…";
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string head(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  const size_t last = bytes_max == 0 ? std::string_view::npos : text.rfind('\n', bytes_max - 1);
  const size_t kept = last == std::string_view::npos ? 0 : last + 1;
  const auto missing = std::ranges::count(text.substr(kept), '\n') + (text.ends_with('\n') ? 0 : 1);
  return fmt::format("{}[… {} more lines are not shown …]\n", text.substr(0, kept), missing);
}

std::string fenced(std::string_view text, std::string_view language) {
  const std::string body = as_utf8(text);
  const std::string fence(std::max<size_t>(3, longest_run_of_backticks(body) + 1), '`');
  return fmt::format("{}{}\n{}{}{}\n", fence, language, body,
                     body.empty() || body.ends_with('\n') ? "" : "\n", fence);
}

std::string fill(std::string_view text, const Values& values) {
  std::vector<bool> used(values.size(), false);
  std::string out;
  while (true) {
    const size_t begin = text.find("{{");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = text.find("}}", begin);
    KE_ASSERT(end != std::string_view::npos);
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto* found = std::ranges::find(values, name, &Values::value_type::first);
    KE_ASSERT(found != values.end());
    used[static_cast<size_t>(found - values.begin())] = true;
    std::string_view value = found->second;
    while (value.ends_with('\n')) value.remove_suffix(1);
    out += value;
    text.remove_prefix(end + 2);
  }
  KE_ASSERT(std::ranges::all_of(used, [](bool one) { return one; }));
  return out;
}

}  // namespace ke::model
