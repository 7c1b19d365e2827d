// SPDX-License-Identifier: Apache-2.0
#include "knowledge/document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace ke::knowledge {
namespace {

constexpr std::string_view kAnyTarget = "any";
constexpr int kHeaderLinesMax = 64;
constexpr size_t kValuesMax = 256;
constexpr size_t kShownMax = 60;  // characters of a wrong value that a message quotes

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// One line of the front matter.
struct Entry {
  std::string_view key;
  std::vector<std::string> values;
  bool is_list = false;
  int line = 0;
};

// Walks the text line by line and keeps the number for messages.
class Reader {
 public:
  Reader(std::string shown_path, std::string_view text)
      : path_(std::move(shown_path)), rest_(text) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_;
    return line;
  }
  std::string_view rest() const { return rest_; }
  int line() const { return line_; }
  Error error(int line, std::string_view what) const {
    return Error{Errc::invalid, fmt::format("{}:{}: {}.", path_, line, what)};
  }

 private:
  std::string path_;
  std::string_view rest_;
  int line_ = 0;
};

Result<Entry> parse_entry(std::string_view line, const Reader& reader) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) {
    return reader.error(reader.line(),
                        fmt::format("'{}' is no `key: value`; write one a line until `---`",
                                    line.substr(0, kShownMax)));
  }
  Entry entry{trimmed(line.substr(0, colon)), {}, false, reader.line()};
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!value.starts_with('[')) {
    if (!value.empty()) entry.values.emplace_back(unquoted(value));
    return entry;
  }
  if (!value.ends_with(']')) {
    return reader.error(reader.line(),
                        fmt::format("the list of '{}' lacks its ']' on this line", entry.key));
  }
  entry.is_list = true;
  for (const std::string& part : split_trimmed(value.substr(1, value.size() - 2), ',')) {
    entry.values.emplace_back(unquoted(part));
  }
  if (entry.values.size() > kValuesMax) {
    return reader.error(reader.line(), fmt::format("the list of '{}' has more than {} entries",
                                                   entry.key, kValuesMax));
  }
  return entry;
}

Result<std::vector<Entry>> parse_header(Reader& reader) {
  const auto first = reader.next();
  if (!first || trimmed(*first) != "---") {
    return reader.error(1, "there is no front matter; begin with `---` and end it with `---`");
  }
  std::vector<Entry> entries;
  std::set<std::string_view> seen;
  for (int i = 0; i < kHeaderLinesMax; ++i) {
    const auto line = reader.next();
    if (!line) break;
    if (trimmed(*line) == "---") return entries;
    if (trimmed(*line).empty()) continue;
    entries.push_back(TRY(parse_entry(*line, reader)));
    if (!seen.insert(entries.back().key).second) {
      return reader.error(reader.line(),
                          fmt::format("'{}' stands twice", entries.back().key));
    }
  }
  return reader.error(reader.line(),
                      fmt::format("the front matter has no closing `---` within {} lines",
                                  kHeaderLinesMax));
}

bool is_target_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Result<void> apply_targets(const Entry& entry, const Reader& reader, Document& document) {
  for (const std::string& name : entry.values) {
    if (!is_target_name(name)) {
      return reader.error(
          entry.line, fmt::format("'{}' is no target; write `any` or names as [{}]",
                                  name.substr(0, kShownMax), "a_target, another"));
    }
  }
  document.targets = entry.values;
  return {};
}

Result<void> apply_bounds(const Entry& entry, const Reader& reader, Document& document) {
  for (const std::string& name : entry.values) {
    const auto bound = parse_enum<Bound>(name);
    if (!bound) {
      return reader.error(entry.line, fmt::format("a bottleneck is one of {}, not '{}'",
                                                  fmt::join(kEnumNames<Bound>, ", "),
                                                  name.substr(0, kShownMax)));
    }
    document.bounds.push_back(*bound);
  }
  return {};
}

Result<void> apply_status(const Entry& entry, const Reader& reader, Document& document) {
  const auto status =
      parse_enum<SkillStatus>(entry.values.empty() ? std::string_view() : entry.values.front());
  if (!status) {
    return reader.error(entry.line, fmt::format("a skill's status is one of {}",
                                                fmt::join(kEnumNames<SkillStatus>, ", ")));
  }
  document.skill->status = *status;
  return {};
}

bool is_field(std::string_view key, const Document& document) {
  if (key == "status" || key == "evidence") return document.skill.has_value();
  return key == "title" || key == "targets" || key == "topics" || key == "bottleneck";
}

Result<void> apply(const Entry& entry, const Reader& reader, Document& document) {
  if (!is_field(entry.key, document)) {
    return reader.error(entry.line, fmt::format("'{}' is no field; there are title, targets, "
                                                "topics and bottleneck",
                                                entry.key.substr(0, kShownMax)));
  }
  const bool wants_list = entry.key != "title" && entry.key != "status";
  if (wants_list != entry.is_list) {
    return reader.error(entry.line, wants_list
                                        ? fmt::format("'{0}' is a list; write {0}: [a, b]",
                                                      entry.key)
                                        : fmt::format("'{}' is a text, not a list", entry.key));
  }
  if (entry.key == "title") {
    if (!entry.values.empty()) document.title = entry.values.front();
    return {};
  }
  if (entry.key == "targets") return apply_targets(entry, reader, document);
  if (entry.key == "topics") {
    document.topics = entry.values;
    return {};
  }
  if (entry.key == "bottleneck") return apply_bounds(entry, reader, document);
  if (entry.key == "status") return apply_status(entry, reader, document);
  document.skill->evidence = entry.values;
  return {};
}

}  // namespace

std::vector<std::string> split_trimmed(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    const std::string_view part = trimmed(text.substr(0, at));
    if (!part.empty()) parts.emplace_back(part);
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string Document::lead() const {
  std::string_view rest = body;
  while (true) {
    rest = trimmed(rest);
    const size_t end = rest.find("\n\n");
    const std::string_view paragraph = rest.substr(0, end);
    if (!paragraph.starts_with('#') || end == std::string_view::npos) return std::string(paragraph);
    rest.remove_prefix(end);
  }
}

bool Document::is_for(std::string_view target) const {
  return names(target) || std::ranges::find(targets, kAnyTarget) != targets.end();
}

bool Document::names(std::string_view target) const {
  return std::ranges::find(targets, target) != targets.end();
}

bool Document::is_about(Bound bound) const {
  return std::ranges::find(bounds, bound) != bounds.end();
}

Result<Document> parse_document(std::string path, std::string_view text, std::string origin) {
  Document document;
  document.path = std::move(path);
  document.origin = std::move(origin);
  const bool is_file = !document.origin.empty() && document.origin != kBundled;
  Reader reader(is_file ? document.origin + "/" + document.path : document.path, text);
  if (static_cast<int64_t>(text.size()) > kDocumentBytesMax) {
    return reader.error(1, fmt::format("a document has at most {} bytes, this has {}; split it",
                                       kDocumentBytesMax, text.size()));
  }
  if (text.find('\0') != std::string_view::npos) {
    return reader.error(1, "this is no text: it holds a zero byte");
  }
  if (document.path.starts_with("skills/")) document.skill.emplace();
  const std::vector<Entry> entries = TRY(parse_header(reader));
  for (const Entry& entry : entries) TRY(apply(entry, reader, document));
  const int last = reader.line();
  if (document.title.empty()) return reader.error(last, "the front matter lacks a `title`");
  if (document.targets.empty()) {
    return reader.error(last, "the front matter lacks `targets`; write targets: [any]");
  }
  if (document.topics.empty()) {
    return reader.error(last, "the front matter lacks `topics`; name at least one");
  }
  document.text = text;
  document.body = reader.rest();
  return document;
}

}  // namespace ke::knowledge
