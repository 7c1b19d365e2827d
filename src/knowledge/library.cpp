// SPDX-License-Identifier: Apache-2.0
#include "knowledge/library.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <regex.h>

#include <algorithm>
#include <charconv>
#include <functional>

namespace ke::knowledge {
namespace {

constexpr size_t kPatternMax = 256;
constexpr size_t kLineMax = 4096;  // of a line, what an expression is matched against
constexpr int kRepeatsMax = 100;

using LineTest = std::function<bool(const std::string& line)>;

std::vector<FoundLine> find_lines(const Catalogue& catalogue, int64_t limit, const LineTest& test) {
  std::vector<FoundLine> found;
  for (const Document& document : catalogue.documents()) {
    if (!document.searchable()) continue;
    std::string_view rest = document.text;
    for (int64_t number = 1; !rest.empty(); ++number) {
      if (static_cast<int64_t>(found.size()) >= limit) return found;
      const size_t end = rest.find('\n');
      std::string line(rest.substr(0, std::min(end, kLineMax)));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (line.ends_with('\r')) line.pop_back();
      if (test(line)) found.push_back({&document, number, std::move(line)});
    }
  }
  return found;
}

char lower_char(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool holds(std::string_view text, std::string_view part) {
  return !std::ranges::search(text, part, {}, lower_char, lower_char).empty();
}

// What would let a short pattern take memory or time without bound: nested or large counts, which
// the C library expands, and back references, which it can only try out.
Result<void> check_pattern(const std::string& pattern) {
  const auto refuse = [](std::string what) { return Error{Errc::invalid, std::move(what)}; };
  if (pattern.empty() || pattern.size() > kPatternMax) {
    return refuse(fmt::format("a regular expression has 1 to {} characters.", kPatternMax));
  }
  if (pattern.find('\0') != std::string::npos) {
    return refuse("a regular expression holds no zero byte.");
  }
  for (size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    if (pattern[i + 1] >= '1' && pattern[i + 1] <= '9') {
      return refuse("back references, such as \\1, are not supported; write the text out.");
    }
    ++i;
  }
  const size_t open = pattern.find('{');
  if (open == std::string::npos) return {};
  if (pattern.find('{', open + 1) != std::string::npos) {
    return refuse("a regular expression has one count in braces at most.");
  }
  for (size_t at = open + 1; at < pattern.size() && pattern[at] != '}'; ++at) {
    int count = 0;
    std::from_chars(pattern.data() + at, pattern.data() + pattern.size(), count);
    if (count > kRepeatsMax) {
      return refuse(fmt::format("a count in braces is at most {}.", kRepeatsMax));
    }
  }
  return {};
}

// Owns a compiled expression.
class Expression {
 public:
  explicit Expression(const std::string& pattern)
      : code_(regcomp(&compiled_, pattern.c_str(), REG_EXTENDED | REG_NOSUB | REG_ICASE)) {}
  ~Expression() {
    if (code_ == 0) regfree(&compiled_);
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  Result<void> check() const {
    if (code_ == 0) return {};
    char reason[128];
    regerror(code_, &compiled_, reason, sizeof reason);
    return Error{Errc::invalid, fmt::format("this is no regular expression: {}.", reason)};
  }
  bool matches(const std::string& line) const {
    return regexec(&compiled_, line.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
  int code_;
};

}  // namespace

Result<std::vector<Hit>> Library::search(const Query& query, Scope scope) {
  if (!index_) index_.emplace(TRY(Index::build(catalogue_)));
  return index_->search(query, scope);
}

bool Library::have_vectors() {
  if (!vectorizer_ || !embedded_.empty()) return vectorizer_ != nullptr;
  std::vector<std::string> texts;
  for (const Document& document : catalogue_.documents()) {
    if (!passes(document, {}) || !document.searchable()) continue;
    embedded_.push_back(&document);
    texts.push_back(vector_text(document));
  }
  std::optional<Vectors> made = vectorizer_->vectors(texts);
  if (made) {
    vectors_ = std::move(*made);
  } else {
    vectorizer_.reset();
  }
  return made.has_value();
}

Ranking Library::nearest(const Query& query) {
  const std::string text = vector_text(query.text);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos || !have_vectors()) return {};
  const std::optional<Vectors> asked = vectorizer_->vectors({text});
  if (!asked) {
    vectorizer_.reset();
    return {};
  }
  std::vector<std::pair<double, const Document*>> found;
  for (size_t i = 0; i < embedded_.size(); ++i) {
    if (!passes(*embedded_[i], query)) continue;
    found.emplace_back(cosine(asked->front(), vectors_[i]), embedded_[i]);
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [](const auto& one) {
    return one.first;
  });
  Ranking ranking;
  for (const auto& [likeness, document] : found) ranking.push_back(document);
  return ranking;
}

Result<std::vector<Hit>> Library::find(const Query& query) {
  const Ranking near = nearest(query);
  if (near.empty()) return search(query);
  Query all = query;
  all.limit = static_cast<int64_t>(catalogue_.documents().size());
  std::vector<Hit> hits = TRY(search(all));
  Ranking by_words;
  for (const Hit& hit : hits) by_words.push_back(hit.document);
  const Ranking rankings[] = {std::move(by_words), near};
  std::vector<Hit> found;
  for (const FusedRank& rank : fuse(rankings)) {
    if (static_cast<int64_t>(found.size()) >= query.limit) break;
    const auto hit = std::ranges::find(hits, rank.document, &Hit::document);
    // Where no word met, the beginning says what it is about.
    std::string snippet = hit != hits.end() ? hit->snippet : rank.document->lead();
    if (!query.snippets) snippet.clear();
    found.push_back({rank.document, rank.score, std::move(snippet)});
  }
  return found;
}

std::vector<FoundLine> Library::find_text(std::string_view text, int64_t limit) const {
  if (text.empty()) return {};
  return find_lines(catalogue_, limit, [&](const std::string& line) { return holds(line, text); });
}

Result<std::vector<FoundLine>> Library::find_regex(const std::string& pattern,
                                                   int64_t limit) const {
  TRY(check_pattern(pattern));
  const Expression expression(pattern);
  TRY(expression.check());
  return find_lines(catalogue_, limit,
                    [&](const std::string& line) { return expression.matches(line); });
}

std::vector<const Document*> Library::find_path(const std::string& pattern, int64_t limit) const {
  const bool is_glob = pattern.find_first_of("*?[") != std::string::npos;
  std::vector<const Document*> found;
  for (const Document& document : catalogue_.documents()) {
    if (static_cast<int64_t>(found.size()) >= limit) break;
    const bool matches = is_glob ? fnmatch(pattern.c_str(), document.path.c_str(), 0) == 0
                                 : holds(document.path, pattern);
    if (matches && document.searchable()) found.push_back(&document);
  }
  return found;
}

}  // namespace ke::knowledge
