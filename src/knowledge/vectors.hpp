// SPDX-License-Identifier: Apache-2.0
//
// Ranking by what texts mean, beside ranking by their words. Where vectors come from is somebody
// else's matter: this folder knows no model. Rankings are fused by their places alone, because a
// cosine and a BM25 score have no common scale: reciprocal rank fusion, of Cormack, Clarke and
// Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
// SIGIR 2009.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knowledge/document.hpp"

namespace ke::knowledge {

using Vectors = std::vector<std::vector<float>>;

// Makes vectors of one length, one a text; the texts are not empty.
class Vectorizer {
 public:
  virtual ~Vectorizer() = default;
  // Nothing when it cannot. Whoever implements it says why, once; a search then goes on by words.
  virtual std::optional<Vectors> vectors(const std::vector<std::string>& texts) = 0;
};

// What of a document gets a vector: title, topics, and from its beginning as much as small models
// read (512 tokens; at about four bytes each). A vector of a whole page is a mean of its sections,
// and near to none of them; the beginning says when the page applies.
inline constexpr size_t kVectorTextMax = 2000;
std::string vector_text(const Document& document);
std::string vector_text(std::string_view question);  // as much of it

double cosine(std::span<const float> a, std::span<const float> b);

using Ranking = std::vector<const Document*>;  // best first

struct FusedRank {
  const Document* document = nullptr;
  double score = 0;  // the sum over rankings of 1 / (60 + place)
};

// Best first; of two alike, the one that an earlier ranking has first.
std::vector<FusedRank> fuse(std::span<const Ranking> rankings);

}  // namespace ke::knowledge
