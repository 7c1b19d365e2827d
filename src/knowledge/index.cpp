// SPDX-License-Identifier: Apache-2.0
#include "knowledge/index.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "knowledge/terms.hpp"
#include "store/sqlite/database.hpp"

namespace ke::knowledge {
namespace {

// How much a hit in a column counts. What a document is about stands in its title and topics; its
// first paragraph lists the symptoms.
struct ColumnWeights {
  double title, topics, entry, lead, body;
};
constexpr ColumnWeights kAllWeights{8, 6, 4, 3, 1};
constexpr ColumnWeights kHeadingWeights{8, 6, 4, 3, 0};
// How much the best section counts beside the whole. Its heading counts as twice its text.
constexpr double kSectionWeight = 0.75;
constexpr double kSectionHeadingWeight = 2;
// Two telling words that stand side by side in the question mean more where they do so again.
constexpr double kPairWeight = 0.7;
// Words that were not said count less than those that were.
constexpr double kSynonymWeight = 0.7;
// A document about the bound in question, or written for the very target, is the better one of two
// that match alike.
constexpr double kBoundFactor = 1.4;
constexpr double kTargetFactor = 1.6;

constexpr const char* kSchema =
    "CREATE VIRTUAL TABLE documents USING fts5(title, topics, entry, lead, body, "
    "tokenize = 'porter unicode61');"
    "CREATE VIRTUAL TABLE sections USING fts5(heading, body, tokenize = 'porter unicode61')";

constexpr std::string_view kIndexPath = "index.md";

// index.md's line for each document, by path: "- [Title](guidance/scans.md): cumsum, recurrences".
std::map<std::string, std::string> index_entries(const Catalogue& catalogue) {
  std::map<std::string, std::string> entries;
  const Document* index = catalogue.find(kIndexPath);
  if (!index) return entries;
  for (const std::string& line : split_trimmed(index->body, '\n')) {
    const size_t open = line.find("](");
    const size_t close = line.find(')', open == std::string::npos ? 0 : open);
    if (!line.starts_with("- [") || open == std::string::npos || close == std::string::npos) {
      continue;
    }
    entries[line.substr(open + 2, close - open - 2)] =
        line.substr(3, open - 3) + line.substr(close + 1);
  }
  return entries;
}

struct Section {
  std::string heading;  // with the document's title, which says what it is about
  std::string_view body;
};

// What stands before the first second-level heading, then each such heading's part.
std::vector<Section> sections_of(const Document& document) {
  constexpr std::string_view kHeading = "\n## ";
  std::vector<Section> sections;
  std::string_view rest = document.body;
  std::string heading = document.title;
  while (true) {
    const size_t end = rest.find(kHeading);
    sections.push_back({std::move(heading), rest.substr(0, end)});
    if (end == std::string_view::npos) return sections;
    rest.remove_prefix(end + kHeading.size());
    heading = fmt::format("{} {}", document.title, rest.substr(0, rest.find('\n')));
  }
}

std::string on_one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  const auto doubled = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), doubled), text.end());
  return text;
}

double factor(const Document& document, const Query& query) {
  double factor = 1;
  if (query.bound && document.is_about(*query.bound)) factor *= kBoundFactor;
  if (std::ranges::any_of(query.targets,
                          [&](const std::string& target) { return document.names(target); })) {
    factor *= kTargetFactor;
  }
  return factor;
}

}  // namespace

bool passes(const Document& document, const Query& query) {
  if (document.path == kIndexPath) return false;  // it lists everything and answers nothing
  if (query.only_bound && query.bound && !document.is_about(*query.bound)) return false;
  return query.targets.empty() ||
         std::ranges::any_of(query.targets,
                             [&](const std::string& target) { return document.is_for(target); });
}

Index::Index(const Catalogue& catalogue, std::unique_ptr<Database> database)
    : catalogue_(&catalogue), database_(std::move(database)) {}
Index::Index(Index&&) noexcept = default;
Index::~Index() = default;

Result<Index> Index::build(const Catalogue& catalogue) {
  auto database = TRY(Database::open(":memory:", true, Milliseconds{0}));
  TRY(database->execute(kSchema));
  Index index(catalogue, std::move(database));
  Transaction transaction = TRY(Transaction::begin(*index.database_));
  TRY(index.add_documents());
  TRY(index.add_sections());
  TRY(transaction.commit());
  return index;
}

Result<void> Index::add_documents() {
  const auto entries = index_entries(*catalogue_);
  for (size_t i = 0; i < catalogue_->documents().size(); ++i) {
    const Document& document = catalogue_->documents()[i];
    if (!document.searchable()) continue;
    const auto entry = entries.find(document.path);
    Statement insert = TRY(database_->prepare(
        "INSERT INTO documents(rowid, title, topics, entry, lead, body) VALUES (?,?,?,?,?,?)"));
    insert.bind(static_cast<int64_t>(i) + 1)
        .bind(document.title)
        .bind(fmt::format("{}", fmt::join(document.topics, ", ")))
        .bind(entry == entries.end() ? std::string_view() : std::string_view(entry->second))
        .bind(document.lead())
        .bind(document.body);
    TRY(insert.run());
  }
  return {};
}

Result<void> Index::add_sections() {
  for (size_t i = 0; i < catalogue_->documents().size(); ++i) {
    const Document& document = catalogue_->documents()[i];
    if (!document.searchable() || document.path == kIndexPath) continue;
    for (const Section& section : sections_of(document)) {
      section_of_.push_back(i);
      Statement insert =
          TRY(database_->prepare("INSERT INTO sections(rowid, heading, body) VALUES (?,?,?)"));
      insert.bind(static_cast<int64_t>(section_of_.size()))
          .bind(section.heading)
          .bind(section.body);
      TRY(insert.run());
    }
  }
  return {};
}

Result<void> Index::add_scores(const std::vector<std::string>& terms, Scope scope, double weight,
                               std::vector<double>& scores) const {
  if (terms.empty()) return {};
  const ColumnWeights& columns = scope == Scope::all ? kAllWeights : kHeadingWeights;
  std::string expression = match_any(terms);
  if (scope == Scope::headings) {
    expression = fmt::format("{{title topics entry lead}} : ({})", expression);
  }
  Statement select = TRY(
      database_->prepare("SELECT rowid, -bm25(documents, ?, ?, ?, ?, ?) FROM documents WHERE "
                         "documents MATCH ?"));
  select.bind(columns.title).bind(columns.topics).bind(columns.entry).bind(columns.lead);
  select.bind(columns.body).bind(expression);
  while (TRY(select.step())) {
    scores[static_cast<size_t>(select.integer(0) - 1)] += weight * select.real(1);
  }
  return scope == Scope::all ? add_section_scores(expression, weight * kSectionWeight, scores)
                             : Result<void>();
}

Result<void> Index::add_section_scores(const std::string& expression, double weight,
                                       std::vector<double>& scores) const {
  Statement select = TRY(database_->prepare(
      "SELECT rowid, -bm25(sections, ?, 1) FROM sections WHERE sections MATCH ?"));
  select.bind(kSectionHeadingWeight).bind(expression);
  std::vector<double> best(scores.size(), 0);
  while (TRY(select.step())) {
    double& of_document = best[section_of_[static_cast<size_t>(select.integer(0) - 1)]];
    of_document = std::max(of_document, select.real(1));
  }
  for (size_t i = 0; i < best.size(); ++i) scores[i] += weight * best[i];
  return {};
}

Result<std::string> Index::snippet(const std::vector<std::string>& terms, size_t document) const {
  Statement select = TRY(database_->prepare(
      "SELECT snippet(documents, -1, '', '', ' … ', 24) FROM documents WHERE documents MATCH ? "
      "AND rowid = ?"));
  select.bind(match_any(terms)).bind(static_cast<int64_t>(document) + 1);
  if (!TRY(select.step())) return std::string();
  return on_one_line(select.text(0));
}

Result<std::vector<Hit>> Index::search(const Query& query, Scope scope) const {
  std::vector<std::string> terms = terms_of(query.text);
  const std::vector<std::string> synonyms = synonyms_of(query.text);
  std::vector<double> scores(catalogue_->documents().size(), 0);
  TRY(add_scores(terms, scope, 1, scores));
  TRY(add_scores(synonyms, scope, kSynonymWeight, scores));
  if (scope == Scope::all) TRY(add_scores(pairs_of(query.text), scope, kPairWeight, scores));
  std::vector<Hit> hits;
  for (size_t i = 0; i < scores.size(); ++i) {
    const Document& document = catalogue_->documents()[i];
    if (scores[i] <= 0 || !passes(document, query)) continue;
    hits.push_back({&document, scores[i] * factor(document, query), ""});
  }
  std::ranges::stable_sort(hits, std::ranges::greater(), &Hit::score);
  if (static_cast<int64_t>(hits.size()) > query.limit) {
    hits.resize(static_cast<size_t>(std::max<int64_t>(query.limit, 0)));
  }
  if (!query.snippets) return hits;
  terms.insert(terms.end(), synonyms.begin(), synonyms.end());
  for (Hit& hit : hits) {
    hit.snippet = TRY(snippet(terms, static_cast<size_t>(hit.document -
                                                         catalogue_->documents().data())));
  }
  return hits;
}

}  // namespace ke::knowledge
