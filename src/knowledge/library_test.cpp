// SPDX-License-Identifier: Apache-2.0
//
// Searching a library of a few made-up documents.
#include "knowledge/library.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "knowledge/deep_search.hpp"
#include "knowledge/terms.hpp"

namespace ke::knowledge {
namespace {

std::string page(const std::string& title, const std::string& header, const std::string& body) {
  return "---\ntitle: " + title + "\n" + header + "\n---\n" + body + "\n";
}

Catalogue small_catalogue() {
  const SourceFile files[] = {
      {"index.md",
       page("Index", "targets: [any]\ntopics: [index]",
            "softmax sums transpose\n\n- [Sums](sums.md): totals of anything\n"),
       "bundled"},
      {"sums.md",
       page("Sums of rows", "targets: [any]\ntopics: [reduction, rows]\nbottleneck: [memory]",
            "Use this when rows are added.\n\nMany accumulators hide latency."),
       "bundled"},
      {"softmax.md",
       page("Softmax", "targets: [any]\ntopics: [softmax]\nbottleneck: [memory, compute]",
            "Rows are read three times.\n\nKeep the row in cache."),
       "bundled"},
      {"gpu/banks.md",
       page("Shared memory banks", "targets: [cuda]\ntopics: [banks, shared memory]",
            "Reads are serialised.\n\nPad the tile. Sums go through shuffles."),
       "bundled"},
      {"skills/proposed.md",
       page("Lesson on sums", "targets: [any]\ntopics: [sums]\nstatus: proposed", "Sums."), "/w"},
      {"skills/accepted.md",
       page("Lesson on unrolling",
            "targets: [any]\ntopics: [unroll]\nstatus: accepted\n"
            "evidence: [problem=p digest=d run=1 from=2 to=3 gain=1.5 low=1.4 high=1.6]",
            "Unroll."),
       "/w"}};
  return Catalogue::of(files);
}

std::vector<std::string> paths(const Result<std::vector<Hit>>& hits) {
  std::vector<std::string> found;
  if (!hits) return {hits.error().message};
  for (const Hit& hit : *hits) found.push_back(hit.document->path);
  return found;
}

class LibraryTest : public testing::Test {
 protected:
  std::vector<std::string> search(const Query& query) { return paths(library_.search(query)); }
  Library library_{small_catalogue()};
};

TEST_F(LibraryTest, RanksTitlesBeforeBodies) {
  EXPECT_EQ(search({.text = "how do I sum rows?"}).front(), "sums.md");
}

TEST_F(LibraryTest, FiltersByTargetAndAnyAlwaysMatches) {
  const auto all = search({.text = "sums"});
  EXPECT_EQ(all, (std::vector<std::string>{"sums.md", "gpu/banks.md"}));
  EXPECT_EQ(search({.text = "sums", .targets = {"x86"}}), std::vector<std::string>{"sums.md"});
  EXPECT_EQ(search({.text = "sums", .targets = {"x86", "cuda"}}).size(), 2u);
}

TEST_F(LibraryTest, TakesTheBoundAsAPreferenceUnlessItIsDemanded) {
  EXPECT_EQ(search({.text = "rows", .bound = Bound::compute}).size(), 2u);
  EXPECT_EQ(search({.text = "rows", .bound = Bound::compute, .only_bound = true}),
            std::vector<std::string>{"softmax.md"});
}

TEST_F(LibraryTest, FindsAcceptedSkillsAlone) {
  EXPECT_EQ(search({.text = "unroll"}), std::vector<std::string>{"skills/accepted.md"});
  for (const std::string& path : search({.text = "lesson sums"})) {
    EXPECT_NE(path, "skills/proposed.md");
  }
}

TEST_F(LibraryTest, TakesHostileTextAsWords) {
  for (const char* text :
       {"\"", "\"\"\" OR *", "title:", "NEAR(a b", "sums AND", "sums NOT sums", "{title}: sums",
        "^sums", "-sums", "sums*", "'; DROP TABLE documents; --", "(((((", "\\", "\xff\xfe sums",
        "a\nb\tsums", "sums + +", "NOT", ""}) {
    SCOPED_TRACE(text);
    const auto hits = library_.search({.text = text});
    ASSERT_TRUE(hits) << hits.error().message;
    if (std::string(text).find("sums") != std::string::npos) {
      ASSERT_FALSE(hits->empty());
      EXPECT_EQ(hits->front().document->path, "sums.md");
    }
  }
  EXPECT_TRUE(library_.search({.text = std::string(1 << 20, 'x')}));
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "w" + std::to_string(i) + " ";
  EXPECT_TRUE(library_.search({.text = many}));
  EXPECT_TRUE(library_.search({.text = std::string("sums\0rows", 9)}));
}

TEST_F(LibraryTest, GivesASnippetOnOneLineAndKeepsTheLimit) {
  const auto hits = library_.search({.text = "accumulators", .limit = 1});
  ASSERT_TRUE(hits);
  ASSERT_EQ(hits->size(), 1u);
  EXPECT_NE(hits->front().snippet.find("accumulators hide latency"), std::string::npos);
  EXPECT_EQ(hits->front().snippet.find('\n'), std::string::npos);
  EXPECT_TRUE(search({.text = "sums", .limit = 0}).empty());
}

TEST_F(LibraryTest, SearchesLinesByTextAndByExpression) {
  const auto lines = library_.find_text("PAD THE", 10);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].document->path, "gpu/banks.md");
  EXPECT_EQ(lines[0].line, 8);
  const auto matched = library_.find_regex("row[s]? (are|in)", 10);
  ASSERT_TRUE(matched);
  EXPECT_EQ(matched->size(), 3u);
  EXPECT_EQ(library_.find_regex("row", 1)->size(), 1u);
  EXPECT_TRUE(library_.find_text("", 10).empty());
}

TEST_F(LibraryTest, RefusesExpressionsThatAreWrongOrCouldTakeLong) {
  for (const std::string& pattern :
       {std::string("(open"), std::string(""), std::string(300, 'a'), std::string("(a)\\1"),
        std::string("a{1,30000}"), std::string("(a{100}){100}"), std::string("a\0b", 3)}) {
    SCOPED_TRACE(pattern);
    const auto found = library_.find_regex(pattern, 10);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Errc::invalid);
  }
  EXPECT_TRUE(library_.find_regex("(a*)*(a|aa)*b", 10));
}

TEST_F(LibraryTest, SearchesPathsByPartAndByGlob) {
  EXPECT_EQ(library_.find_path("BANK", 10).size(), 1u);
  EXPECT_EQ(library_.find_path("gpu/*", 10).size(), 1u);
  EXPECT_EQ(library_.find_path("*.md", 2).size(), 2u);
  EXPECT_TRUE(library_.find_path("nowhere", 10).empty());
}

// --- Words --------------------------------------------------------------------------------------

TEST(Terms, DropsWordsThatSayNothing) {
  EXPECT_EQ(terms_of("How do I use std::exp on 1024 rows of bf16, twice bf16?"),
            (std::vector<std::string>{"std", "exp", "rows", "bf16"}));
}

TEST(Terms, AddsWhatTheFieldAlsoCallsIt) {
  const auto synonyms = synonyms_of("The page walks take long.");
  EXPECT_NE(std::ranges::find(synonyms, "tlb"), synonyms.end());
  EXPECT_TRUE(synonyms_of("TLB and pages").empty());
}

TEST(Terms, KnowsTheOtherSpelling) {
  const auto has = [](const char* text, const char* word) {
    const auto synonyms = synonyms_of(text);
    return std::ranges::find(synonyms, word) != synonyms.end();
  };
  EXPECT_TRUE(has("is it vectorized", "vectorised"));
  EXPECT_TRUE(has("Normalization of rows", "normalisation"));
  EXPECT_FALSE(has("the size of a prize", "sise"));
  EXPECT_FALSE(has("the size of a prize", "prise"));
}

TEST(Terms, PairsStandSideBySide) {
  EXPECT_EQ(pairs_of("Cache line or cache-line: a page 4096 walks on"),
            (std::vector<std::string>{"cache line"}));
}

// A page on many things answers a question about one of them, though a page on another thing names
// the words oftener, but scattered.
TEST(Sections, AreFoundInPagesOnManyThings) {
  std::string many = "Anything.\n";
  for (const char* thing : {"apples", "pears", "plums", "cherries", "grapes", "melons"}) {
    many += std::string("\n## On ") + thing + "\n\n";
    for (int i = 0; i < 40; ++i) many += std::string("Of ") + thing + " some are ripe. ";
  }
  many += "\n## Stale buffers\n\nA buffer is stale.\n";
  const SourceFile files[] = {
      {"many.md", page("Many", "targets: [any]\ntopics: [fruit]", many), "bundled"},
      {"other.md",
       page("Other", "targets: [any]\ntopics: [noise]",
            "Stale bread.\n\n## One\n\nBread, milk.\n\n## Two\n\nA buffer of bread, of milk."),
       "bundled"}};
  Library library(Catalogue::of(files));
  EXPECT_EQ(paths(library.search({.text = "stale buffer"})).front(), "many.md");
}

TEST(Terms, QuotesWhatItMatches) {
  EXPECT_EQ(match_any({"a", "b\"c"}), "\"a\" OR \"b\"\"c\"");
  EXPECT_EQ(match_any({}), "");
}

// --- Deep search --------------------------------------------------------------------------------

TEST_F(LibraryTest, ChoosesByDiagnosisWithReasonsUnderABudget) {
  const Diagnosis diagnosis{.target = "x86",
                            .bound = Bound::memory,
                            .evidence = {"each row is read three times"},
                            .operations = {"aten._softmax.default"},
                            .skeletons = {"reduce"},
                            .tried = {}};
  const auto chosen = deep_search(library_, diagnosis);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_GE(chosen->size(), 2u);
  EXPECT_EQ((*chosen)[0].document->path, "softmax.md");
  EXPECT_NE((*chosen)[0].reason.find("operations: softmax"), std::string::npos)
      << (*chosen)[0].reason;
  EXPECT_NE((*chosen)[0].reason.find("about memory"), std::string::npos);
  for (const Chosen& one : *chosen) EXPECT_TRUE(one.document->is_for("x86"));

  const int64_t first = (*chosen)[0].tokens;
  const auto tight = deep_search(library_, diagnosis, {.documents_max = 6, .tokens_max = first});
  ASSERT_TRUE(tight);
  int64_t used = 0;
  for (const Chosen& one : *tight) used += one.tokens;
  EXPECT_LE(used, first);
  EXPECT_TRUE(deep_search(library_, diagnosis, {.documents_max = 0})->empty());
}

TEST_F(LibraryTest, PutsPagesAboutWhatWasTriedLater) {
  Diagnosis diagnosis{.evidence = {"softmax of rows that are summed"}};
  EXPECT_EQ(deep_search(library_, diagnosis)->front().document->path, "softmax.md");
  diagnosis.tried = {"softmax"};
  const auto chosen = deep_search(library_, diagnosis);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().document->path, "sums.md");
}

TEST_F(LibraryTest, ShowsWhereASkillWasLearnt) {
  const auto chosen = deep_search(library_, {.evidence = {"unroll"}});
  ASSERT_TRUE(chosen);
  ASSERT_FALSE(chosen->empty());
  EXPECT_NE(chosen->front().reason.find("learnt from problem=p digest=d run=1"), std::string::npos)
      << chosen->front().reason;
}

TEST_F(LibraryTest, FindsNothingForAnEmptyDiagnosis) {
  EXPECT_TRUE(deep_search(library_, {})->empty());
}

}  // namespace
}  // namespace ke::knowledge
