// SPDX-License-Identifier: Apache-2.0
#include "propose/tunables.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace ke {
namespace {

constexpr std::string_view kMark = "ke:tune";
constexpr size_t kValuesMax = 64;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

// The word at the front of `text`, which moves behind it.
std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const auto end = std::ranges::find_if_not(text, is_word);
  const std::string_view word = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  return word;
}

// "NAME in {a, b}" as a tunable without its definition.
std::optional<Tunable> parse_declaration(std::string_view text) {
  Tunable tunable;
  tunable.name = take_word(text);
  if (tunable.name.empty() || take_word(text) != "in") return std::nullopt;
  text = trim(text);
  const size_t close = text.find('}');
  if (!text.starts_with('{') || close == std::string_view::npos) return std::nullopt;
  text = text.substr(1, close - 1);
  while (tunable.values.size() < kValuesMax) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view value = trim(text.substr(0, comma));
    if (value.empty()) return std::nullopt;
    if (std::ranges::find(tunable.values, value) == tunable.values.end()) {
      tunable.values.emplace_back(value);
    }
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  if (tunable.values.size() < 2) return std::nullopt;
  return tunable;
}

// Position behind `name` as a whole word in `line`, or npos.
size_t after_word(std::string_view line, std::string_view name) {
  for (size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool starts = at == 0 || !is_word(line[at - 1]);
    if (starts && (end == line.size() || !is_word(line[end]))) return end;
  }
  return std::string_view::npos;
}

// Finds the value in the line that defines the tunable; `line_offset` is where the line begins.
bool find_definition(std::string_view line, size_t line_offset, Tunable& tunable) {
  size_t begin = after_word(line, tunable.name);
  if (begin == std::string_view::npos) return false;
  constexpr std::string_view kDefine = "#define";
  std::string_view rest = trim(line);
  size_t end = line.size();
  if (rest.starts_with(kDefine)) {
    rest.remove_prefix(kDefine.size());
    // The macro itself, and not one with parameters: those are no part of the value.
    if (take_word(rest) != tunable.name || rest.starts_with('(')) return false;
  } else {
    begin = line.find_first_not_of(" \t", begin);
    if (begin == std::string_view::npos || line[begin] != '=') return false;
    ++begin;
    if (begin < line.size() && line[begin] == '=') return false;  // a comparison
    end = std::min(line.find(';', begin), line.size());
  }
  end = std::min(end, line.find("//", begin));
  end = std::min(end, line.find(" #", begin));
  const std::string_view value = trim(line.substr(begin, end - begin));
  if (value.empty()) return false;
  tunable.current = value;
  tunable.offset = line_offset + static_cast<size_t>(value.data() - line.data());
  return true;
}

}  // namespace

std::vector<Tunable> find_tunables(std::string_view source) {
  std::vector<Tunable> tunables;
  std::optional<Tunable> declared;
  for (size_t begin = 0; begin < source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    const std::string_view line = source.substr(begin, end - begin);
    if (declared && find_definition(line, begin, *declared)) {
      tunables.push_back(std::move(*declared));
    }
    declared.reset();
    const size_t mark = line.find(kMark);
    if (mark != std::string_view::npos) {
      declared = parse_declaration(line.substr(mark + kMark.size()));
    }
    begin = end + 1;
  }
  return tunables;
}

std::string with_value(std::string_view source, const Tunable& tunable, std::string_view value) {
  std::string changed(source);
  changed.replace(tunable.offset, tunable.current.size(), value);
  return changed;
}

}  // namespace ke
