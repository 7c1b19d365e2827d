// SPDX-License-Identifier: Apache-2.0
#include "knowledge/vectors.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "knowledge/deep_search.hpp"

namespace ke::knowledge {
namespace {

std::string page_of(const std::string& title, const std::string& targets,
                    const std::string& body) {
  return "---\ntitle: " + title + "\ntargets: [" + targets + "]\ntopics: [t]\n---\n" + body + "\n";
}

Catalogue three_pages() {
  const SourceFile files[] = {
      {"cats.md", page_of("Cats", "any", "Cats purr and sleep."), "bundled"},
      {"dogs.md", page_of("Dogs", "any", "Dogs bark; cats flee."), "bundled"},
      {"felines.md", page_of("Felines", "cuda", "They purr."), "bundled"},
      {"skills/no.md",
       "---\ntitle: Hidden feline\ntargets: [any]\ntopics: [t]\nstatus: proposed\n---\nx\n", "/w"}};
  return Catalogue::of(files);
}

// Knows two things: cats, by either name, and dogs. Fails from call `dies_at` on.
class TwoMeanings final : public Vectorizer {
 public:
  explicit TwoMeanings(std::vector<size_t>& calls, size_t dies_at = 100)
      : calls_(calls), dies_at_(dies_at) {}
  std::optional<Vectors> vectors(const std::vector<std::string>& texts) override {
    if (calls_.size() >= dies_at_) return std::nullopt;
    calls_.push_back(texts.size());
    Vectors made;
    for (const std::string& text : texts) {
      const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
      const bool feline = has("Feline") || has("feline");
      made.push_back({feline ? 1.0f : has("Cats") || has("cat") ? 0.9f : 0.0f,
                      has("Dogs") || has("dog") ? 1.0f : 0.0f, 0.1f});
    }
    return made;
  }

 private:
  std::vector<size_t>& calls_;
  size_t dies_at_;
};

std::vector<std::string> paths_of(const Result<std::vector<Hit>>& hits) {
  std::vector<std::string> found;
  for (const Hit& hit : *hits) found.push_back(hit.document->path);
  return found;
}

using Paths = std::vector<std::string>;

TEST(Fusion, PutsWhatTwoRankingsAgreeOnFirst) {
  Document a, b, c, d;
  const Ranking rankings[] = {{&a, &b, &c}, {&d, &b, &a}};
  const std::vector<FusedRank> fused = fuse(rankings);
  ASSERT_EQ(fused.size(), 4u);
  EXPECT_EQ(fused[0].document, &a);  // places 1 and 3
  EXPECT_EQ(fused[1].document, &b);  // places 2 and 2
  EXPECT_EQ(fused[2].document, &d);  // place 1 alone
  EXPECT_EQ(fused[3].document, &c);
  EXPECT_DOUBLE_EQ(fused[0].score, 1.0 / 61 + 1.0 / 63);
  EXPECT_DOUBLE_EQ(fused[1].score, 2.0 / 62);
  const Ranking level[] = {{&c, &d}, {&d, &c}};
  EXPECT_EQ(fuse(level)[0].document, &c) << "the earlier ranking decides between equals";
  EXPECT_TRUE(fuse({}).empty());
}

TEST(Vectors, TheirCosineIsOfDirectionsAlone) {
  const std::vector<float> a{1, 0}, b{5, 0}, c{0, 2}, d{-3, 0}, none{0, 0};
  EXPECT_DOUBLE_EQ(cosine(a, b), 1);
  EXPECT_DOUBLE_EQ(cosine(a, c), 0);
  EXPECT_DOUBLE_EQ(cosine(a, d), -1);
  EXPECT_EQ(cosine(a, none), 0);
}

TEST(Vectors, OfADocumentAreOfItsBeginning) {
  const SourceFile files[] = {{"a.md", page_of("A title", "any", "First.\n\nSecond."), "bundled"}};
  const Catalogue catalogue = Catalogue::of(files);
  const std::string text = vector_text(catalogue.documents().front());
  EXPECT_TRUE(text.starts_with("A title\nt\n\nFirst.")) << text;
  EXPECT_NE(text.find("Second."), std::string::npos);
  std::string umlauts;
  while (umlauts.size() < kVectorTextMax + 10) umlauts += "x\xC3\xA4";
  const std::string cut = vector_text(umlauts);
  EXPECT_LE(cut.size(), kVectorTextMax);
  EXPECT_GE(cut.size(), kVectorTextMax - 1);
  EXPECT_NE(static_cast<unsigned char>(cut.back()), 0xC3) << "half a character";
}

TEST(Vectors, FindWhatNoWordFinds) {
  std::vector<size_t> calls;
  Library words(three_pages());
  Library both(three_pages(), std::make_unique<TwoMeanings>(calls));
  // "feline" is a word of one page; by meaning, the cats' page is next.
  ASSERT_EQ(both.catalogue().documents().size(), 4u);
  EXPECT_EQ(paths_of(words.find({.text = "feline"})), Paths{"felines.md"});
  const Result<std::vector<Hit>> hits = both.find({.text = "feline"});
  EXPECT_EQ(paths_of(hits), (Paths{"felines.md", "cats.md", "dogs.md"}));
  EXPECT_EQ((*hits)[1].snippet, "Cats purr and sleep.");
  EXPECT_EQ(calls, (std::vector<size_t>{3, 1})) << "documents once, each question once";
  // Filters come first; the limit is of what is left.
  const Query for_x86{.text = "feline", .targets = {"x86"}, .limit = 1};
  EXPECT_EQ(paths_of(both.find(for_x86)), Paths{"cats.md"});
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_TRUE(both.find({.text = " \n"})->empty());
  EXPECT_EQ(calls.size(), 3u) << "an empty question has no vector";
}

TEST(Vectors, ThatFailLeaveTheWords) {
  for (const size_t dies_at : {0u, 1u}) {  // at the documents, at the question
    SCOPED_TRACE(dies_at);
    std::vector<size_t> calls;
    Library words(three_pages());
    Library both(three_pages(), std::make_unique<TwoMeanings>(calls, dies_at));
    for (int i = 0; i < 2; ++i) {
      const auto there = words.search({.text = "cats purr"});
      const auto here = both.find({.text = "cats purr"});
      EXPECT_EQ(paths_of(here), paths_of(there));
      for (size_t k = 0; k < here->size(); ++k) {
        EXPECT_EQ((*here)[k].score, (*there)[k].score);
        EXPECT_EQ((*here)[k].snippet, (*there)[k].snippet);
      }
    }
    EXPECT_EQ(calls.size(), dies_at) << "it is not asked again";
  }
}

TEST(Vectors, GiveAReadingListWhatItsWordsMiss) {
  std::vector<size_t> calls;
  Library words(three_pages());
  Library both(three_pages(), std::make_unique<TwoMeanings>(calls));
  const Diagnosis diagnosis{.target = "cuda", .evidence = {"it is a feline"}};
  const auto list_of = [&](Library& library) {
    Paths found;
    const auto chosen = deep_search(library, diagnosis, {.documents_max = 2});
    for (const Chosen& one : *chosen) {
      found.push_back(one.document->path);
      EXPECT_FALSE(one.reason.empty());
      EXPECT_GT(one.tokens, 0);
    }
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(list_of(words), Paths{"felines.md"});
  EXPECT_EQ(list_of(both), (Paths{"cats.md", "felines.md"}));
}

}  // namespace
}  // namespace ke::knowledge
