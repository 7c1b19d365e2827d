// SPDX-License-Identifier: Apache-2.0
//
// The knowledge base as the rest of the program uses it: all documents, every way to search them.
// The full text index is built when it is first needed.
//
// Threads: one call at a time. What is returned refers to the library's documents.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "knowledge/index.hpp"

namespace ke::knowledge {

// A line that an exact search found.
struct FoundLine {
  const Document* document = nullptr;
  int64_t line = 0;  // of the file, from 1
  std::string text;
};

class Library {
 public:
  explicit Library(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}
  Library(const Library&) = delete;  // the index refers to the catalogue
  Library& operator=(const Library&) = delete;

  const Catalogue& catalogue() const { return catalogue_; }

  Result<std::vector<Hit>> search(const Query& query, Scope scope = Scope::all);

  // Lines that hold the text, whatever the case of ASCII letters; by path.
  std::vector<FoundLine> find_text(std::string_view text, int64_t limit) const;
  // Lines that match a POSIX extended regular expression, whatever the case. Errc::invalid for one
  // that does not compile, or that could take long: it comes from people and models.
  Result<std::vector<FoundLine>> find_regex(const std::string& pattern, int64_t limit) const;
  // Documents whose path holds the text or, when that has any of *?[, matches it as a glob.
  std::vector<const Document*> find_path(const std::string& pattern, int64_t limit) const;

 private:
  Catalogue catalogue_;
  std::optional<Index> index_;
};

}  // namespace ke::knowledge
