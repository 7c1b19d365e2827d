// SPDX-License-Identifier: Apache-2.0
//
// The knowledge base as the rest of the program uses it: all documents, every way to search them.
// The full text index is built, and the documents' vectors are made, when they are first needed.
//
// Threads: one call at a time. What is returned refers to the library's documents.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "knowledge/index.hpp"
#include "knowledge/vectors.hpp"

namespace ke::knowledge {

// A line that an exact search found.
struct FoundLine {
  const Document* document = nullptr;
  int64_t line = 0;  // of the file, from 1
  std::string text;
};

class Library {
 public:
  // `vectorizer` may be null: then words alone decide.
  explicit Library(Catalogue catalogue, std::unique_ptr<Vectorizer> vectorizer = nullptr)
      : catalogue_(std::move(catalogue)), vectorizer_(std::move(vectorizer)) {}
  Library(const Library&) = delete;  // the index refers to the catalogue
  Library& operator=(const Library&) = delete;

  const Catalogue& catalogue() const { return catalogue_; }

  // By words.
  Result<std::vector<Hit>> search(const Query& query, Scope scope = Scope::all);
  // By words and, where there is a vectorizer that works, by meaning: both rankings fused. Scores
  // are then those of the fusion. Without, the same as search().
  Result<std::vector<Hit>> find(const Query& query);
  // By meaning alone: all documents that pass the query's filters, best first. Empty without
  // vectors.
  Ranking nearest(const Query& query);

  // Lines that hold the text, whatever the case of ASCII letters; by path.
  std::vector<FoundLine> find_text(std::string_view text, int64_t limit) const;
  // Lines that match a POSIX extended regular expression, whatever the case. Errc::invalid for one
  // that does not compile, or that could take long: it comes from people and models.
  Result<std::vector<FoundLine>> find_regex(const std::string& pattern, int64_t limit) const;
  // Documents whose path holds the text or, when that has any of *?[, matches it as a glob.
  std::vector<const Document*> find_path(const std::string& pattern, int64_t limit) const;

 private:
  bool have_vectors();

  Catalogue catalogue_;
  std::optional<Index> index_;
  std::unique_ptr<Vectorizer> vectorizer_;  // null again once it has failed
  Ranking embedded_;                        // the documents that have a vector
  Vectors vectors_;                         // theirs
};

}  // namespace ke::knowledge
