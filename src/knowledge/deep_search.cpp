// SPDX-License-Identifier: Apache-2.0
#include "knowledge/deep_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "knowledge/terms.hpp"

namespace ke::knowledge {
namespace {

constexpr int64_t kCandidatesMax = 16;  // of the first stage
constexpr int64_t kAllDocuments = 100'000;
// What the pages say counts as much as what the index says of them.
constexpr double kIndexShare = 0.5;
// A page that answers what was tried, nearly as well as the best such page does, has been used.
constexpr double kTriedLikeness = 0.75;
constexpr double kTriedFactor = 0.5;

using Scores = std::map<const Document*, double>;

// One side of the diagnosis, as a question of its own: a long list of operations must not drown
// out the evidence.
struct Facet {
  std::string_view name;
  std::string text;
  double weight = 1;
};

std::string_view words_of_skeleton(std::string_view skeleton) {
  if (skeleton == "map") return "pointwise elementwise fusion";
  if (skeleton == "reduce") return "reduction row column";
  if (skeleton == "contract") return "matrix product gemm";
  return skeleton;
}

std::vector<Facet> facets_of(const Diagnosis& diagnosis) {
  std::string operations;
  for (const std::string& operation : diagnosis.operations) {
    operations += fmt::format("{} ", operation_name(operation));
  }
  for (const std::string& skeleton : diagnosis.skeletons) {
    operations += fmt::format("{} ", words_of_skeleton(skeleton));
  }
  std::string bound;
  if (diagnosis.bound) {
    bound = *diagnosis.bound == Bound::correctness ? "wrong results correctness"
                                                   : std::string(enum_name(*diagnosis.bound)) +
                                                         " bound";
  }
  std::vector<Facet> facets{{"evidence", fmt::format("{}", fmt::join(diagnosis.evidence, "; ")), 1},
                            {"operations", operations, 0.8},
                            {"bound", bound, 0.3}};
  std::erase_if(facets, [](const Facet& facet) { return terms_of(facet.text).empty(); });
  return facets;
}

// Scores of one question, the best being 1.
Result<Scores> ask(Library& library, const Diagnosis& diagnosis, const std::string& text,
                   Scope scope, int64_t limit) {
  Query query{.text = text,
              .targets = {},
              .bound = diagnosis.bound,
              .limit = limit,
              .snippets = false};
  if (!diagnosis.target.empty()) query.targets = {diagnosis.target};
  Scores scores;
  double best = 0;
  for (const Hit& hit : TRY(library.search(query, scope))) {
    best = std::max(best, hit.score);
    scores[hit.document] = hit.score / best;  // the first is the best
  }
  return scores;
}

// Words of the facet that the document's heading has, or begins alike.
std::vector<std::string> shared_words(const Facet& facet, const Document& document) {
  const std::vector<std::string> heading =
      terms_of(fmt::format("{} {}", document.title, fmt::join(document.topics, " ")));
  std::vector<std::string> asked = terms_of(facet.text);
  for (std::string& word : synonyms_of(facet.text)) asked.push_back(std::move(word));
  std::vector<std::string> shared;
  for (const std::string& word : asked) {
    constexpr size_t kStem = 5;
    const auto alike = [&](const std::string& other) {
      const size_t length = std::min({kStem, word.size(), other.size()});
      return word == other || (length == kStem && word.compare(0, length, other, 0, length) == 0);
    };
    if (std::ranges::any_of(heading, alike)) shared.push_back(word);
  }
  return shared;
}

std::string reason_for(const Document& document, const std::vector<Facet>& facets,
                       const Diagnosis& diagnosis, bool tried) {
  std::vector<std::string> parts;
  for (const Facet& facet : facets) {
    const std::vector<std::string> words = shared_words(facet, document);
    if (!words.empty()) parts.push_back(fmt::format("{}: {}", facet.name, fmt::join(words, ", ")));
  }
  if (parts.empty()) parts.emplace_back("its text speaks of the evidence");
  if (diagnosis.bound && document.is_about(*diagnosis.bound)) {
    parts.push_back(fmt::format("about {}", enum_name(*diagnosis.bound)));
  }
  if (document.names(diagnosis.target)) parts.push_back("for " + diagnosis.target);
  if (tried) parts.emplace_back("close to what was tried");
  if (document.skill && !document.skill->evidence.empty()) {
    parts.push_back(fmt::format("learnt from {}", fmt::join(document.skill->evidence, " and ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add(const Scores& from, double weight, Scores& to) {
  for (const auto& [document, score] : from) to[document] += weight * score;
}

// Both stages: the index proposes, the pages decide.
Result<Scores> two_stages(Library& library, const Diagnosis& diagnosis,
                          const std::vector<Facet>& facets) {
  Scores index, pages;
  for (const Facet& facet : facets) {
    add(TRY(ask(library, diagnosis, facet.text, Scope::headings, kCandidatesMax)), facet.weight,
        index);
    add(TRY(ask(library, diagnosis, facet.text, Scope::all, kAllDocuments)), facet.weight, pages);
  }
  Scores total;
  for (const auto& [document, score] : index) {
    const auto page = pages.find(document);
    total[document] = kIndexShare * score +
                      (1 - kIndexShare) * (page == pages.end() ? 0 : page->second);
  }
  return total;
}

// The whole diagnosis as one question by meaning. What was tried comes last there.
template <class WasTried>
Ranking nearest_to(Library& library, const Diagnosis& diagnosis, const std::vector<Facet>& facets,
                   const WasTried& was_tried) {
  Query query{.text = "", .targets = {}, .bound = diagnosis.bound};
  for (const Facet& facet : facets) query.text += facet.text + "\n";
  if (!diagnosis.target.empty()) query.targets = {diagnosis.target};
  Ranking near = library.nearest(query);
  std::ranges::stable_partition(near, [&](const Document* one) { return !was_tried(one); });
  return near;
}

}  // namespace

std::string_view operation_name(std::string_view operation) {
  if (!operation.starts_with("aten.")) return operation;
  operation.remove_prefix(5);
  return operation.substr(0, operation.find('.'));
}

int64_t estimated_tokens(std::string_view text) {
  return (static_cast<int64_t>(text.size()) + 3) / 4;
}

Result<std::vector<Chosen>> deep_search(Library& library, const Diagnosis& diagnosis,
                                        const DeepSearchLimits& limits) {
  const std::vector<Facet> facets = facets_of(diagnosis);
  const Scores scores = TRY(two_stages(library, diagnosis, facets));
  const std::string tried_text = fmt::format("{}", fmt::join(diagnosis.tried, "; "));
  const Scores tried =
      TRY(ask(library, diagnosis, tried_text, Scope::headings, kCandidatesMax));
  const auto was_tried = [&](const Document* document) {
    const auto at = tried.find(document);
    return at != tried.end() && at->second >= kTriedLikeness;
  };
  std::vector<Chosen> ranked;
  for (const auto& [document, score] : scores) {
    const bool used = was_tried(document);
    ranked.push_back({document, score * (used ? kTriedFactor : 1),
                      estimated_tokens(document->text),
                      reason_for(*document, facets, diagnosis, used)});
  }
  std::ranges::sort(ranked, [](const Chosen& a, const Chosen& b) {
    return a.score != b.score ? a.score > b.score : a.document->path < b.document->path;
  });
  if (const Ranking near = nearest_to(library, diagnosis, facets, was_tried); !near.empty()) {
    Ranking by_words;
    for (const Chosen& one : ranked) by_words.push_back(one.document);
    const Ranking rankings[] = {std::move(by_words), near};
    std::vector<Chosen> fused;
    for (const FusedRank& rank : fuse(rankings)) {
      fused.push_back({rank.document, rank.score, estimated_tokens(rank.document->text),
                       reason_for(*rank.document, facets, diagnosis, was_tried(rank.document))});
    }
    ranked = std::move(fused);
  }
  std::vector<Chosen> chosen;
  int64_t left = limits.tokens_max;
  for (Chosen& one : ranked) {
    if (static_cast<int64_t>(chosen.size()) >= limits.documents_max) break;
    if (one.tokens > left) continue;
    left -= one.tokens;
    chosen.push_back(std::move(one));
  }
  return chosen;
}

}  // namespace ke::knowledge
