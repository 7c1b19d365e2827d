// SPDX-License-Identifier: Apache-2.0
//
// Full text search over a catalogue's searchable documents: SQLite FTS5 in memory, ranked by BM25
// with weights for title, topics and first paragraph, and by the document's best section: a page on
// many things would otherwise answer no question about one of them. No model, no network.
//
// Threads: one call at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "knowledge/catalogue.hpp"

namespace ke {
class Database;
}

namespace ke::knowledge {

struct Query {
  std::string text;                  // words, in any form; nothing in it is syntax
  std::vector<std::string> targets;  // documents for one of these, or for any; empty: all
  std::optional<Bound> bound;        // documents about it come earlier
  bool only_bound = false;           // … and others not at all
  int64_t limit = 8;
  bool snippets = true;  // each costs a query; a ranking alone needs none
};

struct Hit {
  const Document* document = nullptr;  // of the catalogue
  double score = 0;                    // larger is better; comparable within one answer only
  std::string snippet;                 // the words around the best match, on one line; if asked
};

// What a question's words are looked for in.
enum class Scope : uint8_t {
  headings,  // title, topics, first paragraph, and the document's line in index.md
  all,       // and the body
};

// Whether the question's target and bound let it through.
bool passes(const Document& document, const Query& query);

class Index {
 public:
  // The catalogue must outlive the index.
  static Result<Index> build(const Catalogue& catalogue);
  Index(Index&&) noexcept;
  ~Index();

  // Best first. A text without any telling word finds nothing.
  Result<std::vector<Hit>> search(const Query& query, Scope scope = Scope::all) const;

 private:
  Index(const Catalogue& catalogue, std::unique_ptr<Database> database);
  Result<void> add_documents();
  Result<void> add_sections();
  // Scores by position in the catalogue; 0 where nothing matched.
  Result<void> add_scores(const std::vector<std::string>& terms, Scope scope, double weight,
                          std::vector<double>& scores) const;
  Result<void> add_section_scores(const std::string& expression, double weight,
                                  std::vector<double>& scores) const;
  Result<std::string> snippet(const std::vector<std::string>& terms, size_t document) const;

  const Catalogue* catalogue_;
  std::unique_ptr<Database> database_;
  std::vector<size_t> section_of_;  // a section's document, by position in the catalogue
};

}  // namespace ke::knowledge
