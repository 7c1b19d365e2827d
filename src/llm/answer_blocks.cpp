// SPDX-License-Identifier: Apache-2.0
#include "llm/answer_blocks.hpp"

#include <algorithm>
#include <utility>

namespace ke::llm {

namespace {

constexpr size_t kIndentMax = 12;  // inside lists
constexpr int kJsonDepthMax = 64;

struct Fence {
  char mark = '`';
  size_t length = 0;
  size_t indent = 0;
  std::string_view rest;  // behind the marks, trimmed
};

std::optional<Fence> fence_in(std::string_view line) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::string_view text = line.substr(indent);
  if (indent > kIndentMax || text.empty() || (text[0] != '`' && text[0] != '~')) {
    return std::nullopt;
  }
  const size_t length = std::min(text.find_first_not_of(text[0]), text.size());
  if (length < 3) return std::nullopt;
  std::string_view rest = without_end_blanks(text.substr(length));
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (text[0] == '`' && rest.find('`') != std::string_view::npos) return std::nullopt;
  return Fence{text[0], length, indent, rest};
}

}  // namespace

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool begins_like(std::string_view text, std::initializer_list<std::string_view> starts) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return std::ranges::any_of(starts, [&](std::string_view s) { return text.starts_with(s); });
}

bool looks_like_json(const Segment& segment) {
  return segment.info.starts_with("json") ||
         (segment.info.empty() && begins_like(segment.text, {"{", "["}));
}

bool nests_too_deeply(std::string_view json) {
  int depth = 0;
  bool quoted = false, escaped = false;
  for (const char c : json) {
    if (escaped) {
      escaped = false;
    } else if (quoted) {
      escaped = c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kJsonDepthMax) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

std::string_view without_end_blanks(std::string_view line) {
  const size_t last = line.find_last_not_of(" \t\r");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view next_line(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool SegmentScanner::take(std::string_view line) {
  const std::optional<Fence> fence = fence_in(line);
  if (fence_length_ == 0) {
    if (!fence) {
      current_.text.append(line).append("\n");
      return false;
    }
    close_segment(true);
    current_.fenced = true;
    current_.info = fence->rest;
    fence_ = fence->mark;
    fence_length_ = fence->length;
    indent_ = fence->indent;
    return false;
  }
  if (fence && fence->mark == fence_ && fence->length >= fence_length_ && fence->rest.empty()) {
    fence_length_ = 0;
    close_segment(true);
    return true;
  }
  const size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  current_.text.append(line.substr(std::min(indent_, blanks))).append("\n");
  return false;
}

void SegmentScanner::finish() { close_segment(fence_length_ == 0); }

void SegmentScanner::close_segment(bool complete) {
  Segment segment = std::exchange(current_, {});
  segment.complete = complete;
  if (segment.fenced || !segment.text.empty()) segments_.push_back(std::move(segment));
}

std::string first_prose_line(const std::vector<Segment>& segments, size_t bytes_max) {
  for (const Segment& segment : segments) {
    if (segment.fenced) continue;
    std::string_view rest = segment.text;
    while (!rest.empty()) {
      std::string_view line = next_line(rest);
      line.remove_prefix(std::min(line.find_first_not_of("#*->_ \t"), line.size()));
      while (line.ends_with('*') || line.ends_with('_')) line.remove_suffix(1);
      if (is_blank(line)) continue;
      size_t end = std::min(line.size(), bytes_max);
      const auto inside = [&](size_t at) {  // a character of UTF-8
        return at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U;
      };
      while (end > 0 && inside(end)) --end;
      return std::string(without_end_blanks(line.substr(0, end)));
    }
  }
  return {};
}

}  // namespace ke::llm
