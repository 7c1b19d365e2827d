// SPDX-License-Identifier: Apache-2.0
#include "knowledge/terms.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "knowledge/synonyms.hpp"

namespace ke::knowledge {
namespace {

// Words that say nothing about a subject; sorted for binary search.
constexpr auto kStopWords = std::to_array<std::string_view>({
    "a", "about", "after", "again", "all", "already", "also", "although", "always", "am", "an",
    "and", "any", "are", "as", "at", "be", "because", "been", "before", "being", "both", "brought",
    "but", "by", "can", "cannot", "come", "comes", "could", "did", "do", "does", "doing", "don",
    "done", "down", "each", "eight", "either", "enough", "even", "ever", "every", "exactly",
    "example", "few", "five", "for", "four", "from", "further", "get", "gets", "give", "given",
    "gives", "go", "goes", "going", "got", "had", "has", "have", "having", "he", "her", "here",
    "him", "his", "how", "hundred", "i", "idea", "if", "in", "instead", "into", "is", "it", "its",
    "just", "keep", "keeps", "kept", "know", "let", "like", "look", "looking", "looks", "made",
    "make", "makes", "many", "may", "me", "mean", "means", "might", "million", "more", "most",
    "much", "must", "my", "need", "never", "nine", "no", "nor", "not", "nothing", "now", "of",
    "off", "on", "once", "one", "ones", "only", "or", "other", "our", "out", "over", "own",
    "people", "perhaps", "please", "put", "puts", "quite", "rather", "really", "say", "says",
    "see", "seems", "seven", "shall", "she", "should", "show", "simply", "sit", "sits", "six",
    "so", "some", "stand", "stands", "start", "starts", "still", "such", "sure", "suspect", "take",
    "takes", "tell", "ten", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "thing", "think", "this", "those", "though", "thousand", "three", "through", "to",
    "too", "try", "trying", "twice", "two", "under", "until", "up", "upon", "us", "use", "used",
    "uses", "using", "very", "want", "wants", "was", "way", "we", "well", "were", "what",
    "whatever", "when", "where", "whether", "which", "while", "who", "whole", "whom", "why",
    "will", "with", "without", "work", "working", "works", "worth", "would", "yet", "you", "your"});
static_assert(std::ranges::is_sorted(kStopWords));

constexpr size_t kWordMax = 64;  // bytes; what is longer is no word

bool is_word_byte(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (is_word_byte(static_cast<unsigned char>(c))) {
      word += lower(c);
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

bool says_something(const std::string& word) {
  if (word.size() < 2 || word.size() > kWordMax) return false;
  if (std::ranges::binary_search(kStopWords, word)) return false;
  return !std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// "vectorise" of "vectorize": documents are written in British English. Empty for other words.
std::string british(const std::string& word) {
  constexpr size_t kStemMin = 4;  // not "size", not "prize"
  for (const std::string_view end : {"ize", "ized", "izes", "izing", "izer", "ization"}) {
    if (word.size() < end.size() + kStemMin || !word.ends_with(end)) continue;
    std::string other = word;
    other[word.size() - end.size() + 1] = 's';
    return other;
  }
  return {};
}

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && (b.size() == a.size() || b.substr(a.size()) == "s");
}

bool holds(const std::vector<std::string>& words, const std::vector<std::string>& phrase) {
  return !std::ranges::search(words, phrase, same_word).empty();
}

}  // namespace

std::vector<std::string> terms_of(std::string_view text) {
  std::vector<std::string> terms;
  std::set<std::string> seen;
  for (std::string& word : words_of(text)) {
    if (static_cast<int64_t>(terms.size()) == kTermsMax) break;
    if (says_something(word) && seen.insert(word).second) terms.push_back(std::move(word));
  }
  return terms;
}

std::vector<std::string> synonyms_of(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  std::vector<std::string> found;
  for (const std::string& word : words) {
    std::string other = british(word);
    const bool known = other.empty() || std::ranges::find(found, other) != found.end();
    if (!known) found.push_back(std::move(other));
  }
  for (const Synonym& synonym : all_synonyms()) {
    if (!holds(words, words_of(synonym.said))) continue;
    for (const std::string_view meant : synonym.meant) {
      const bool known = holds(words, words_of(meant)) ||
                         std::ranges::find(found, meant) != found.end();
      if (!known && !meant.empty()) found.emplace_back(meant);
    }
  }
  return found;
}

std::vector<std::string> pairs_of(std::string_view text) {
  const std::vector<std::string> words = words_of(text);
  std::vector<std::string> pairs;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (static_cast<int64_t>(pairs.size()) == kTermsMax) break;
    if (!says_something(words[i]) || !says_something(words[i + 1])) continue;
    std::string pair = words[i] + " " + words[i + 1];
    if (std::ranges::find(pairs, pair) == pairs.end()) pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::string match_any(const std::vector<std::string>& terms) {
  std::string expression;
  for (const std::string& term : terms) {
    expression += expression.empty() ? "\"" : " OR \"";
    for (const char c : term) {
      if (c == '"') expression += '"';
      if (c != '\0') expression += c;
    }
    expression += '"';
  }
  return expression;
}

}  // namespace ke::knowledge
