// SPDX-License-Identifier: Apache-2.0
//
// Mutated, spliced and cut answers: whatever comes, the reader ends, accepts nothing that is empty
// or lacks the entry, and reads a stream as it reads the whole.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "llm/answer.hpp"
#include "llm/answer_blocks.hpp"

namespace ke::llm {
namespace {

const std::string kBase =
    "#include \"kernel.h\"\nconstexpr int N = 4;\n\nint ke_launch(int n) {\n  return N;\n}\n";

std::vector<std::string> seeds() {
  return {"Words.\n```cpp\n" + kBase + "```\nMore.\n",
          kBase,
          "```\n<<<<<<< SEARCH\nconstexpr int N = 4;\n=======\nconstexpr int N = 8;\n"
          ">>>>>>> REPLACE\n```\n",
          "--- a/k\n+++ b/k\n@@ -1,3 +1,3 @@\n #include \"kernel.h\"\n-constexpr int N = 4;\n"
          "+constexpr int N = 5;\n \n",
          "```diff\n@@ -0,0 +1 @@\n+int ke_launch();\n```\n",
          "```json\n{\"kernels\": [{\"tile\": [8, 16]}]}\n```\n",
          "First.\n```tool\n{\"tool\": \"compile\"}\n```\n```cpp\n" + kBase + "```\n",
          "```tool\n{\"tool\": \"find\", \"regex\": \"ke_[a-z]+\"}\n```\n",
          "1. a\n   ```cpp\n   int ke_launch();\n   ```\n2. b\n~~~\nint ke_launch(int);\n~~~\n"};
}

const std::vector<std::string>& tokens() {
  static const std::vector<std::string> all{
      "```",     "```\n", "\n```\n", "~~~\n",  "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n",
      "@@",      "@@ -1 +1 @@\n",    "--- a\n+++ b\n",  "+",  "-",  " ",  "\n",  "\r\n", "\r",
      "ke_launch", "{",   "[",       "\"",     "\\",               std::string(1, '\0'),
      "```tool\n", "{\"tool\": \"compile\"}\n", "\"tool\"", "\"profile\"", "\"search\"", "tool",
      "\xFF",    "\xEF\xBB\xBF",     "@@ -99999999999999999999,1 +1 @@\n", "diff --git\n", "\t"};
  return all;
}

std::string mutated(std::string text, Rng& rng) {
  const std::vector<std::string> all = seeds();
  const int64_t count = 1 + rng.below(6);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()) + 1));
    const auto length = static_cast<size_t>(rng.below(40));
    switch (rng.below(7)) {
      case 0: text.resize(at); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, rng.pick(tokens())); break;
      case 3: text.insert(at, text.substr(at, length)); break;
      case 4: text.insert(at, rng.pick(all)); break;
      case 5: if (at < text.size()) text[at] = static_cast<char>(rng.below(256)); break;
      default: text.insert(at, std::string(static_cast<size_t>(rng.below(300)), '`')); break;
    }
  }
  return text;
}

void check_source(const std::string& source, const AnswerContract& contract) {
  EXPECT_FALSE(is_blank(source));
  EXPECT_NE(source.find(contract.entry), std::string::npos);
  EXPECT_EQ(source.find('\0'), std::string::npos);
  EXPECT_NE(source, contract.base);
  EXPECT_LE(static_cast<int64_t>(source.size()), contract.source_bytes_max);
}

void check(const AnswerResult& result, const AnswerContract& contract) {
  if (!result) {
    EXPECT_FALSE(result.error().sentence.empty());
    return;
  }
  if (result->form == AnswerForm::plan) {
    EXPECT_TRUE(contract.plans);
    EXPECT_GT(result->plan.size(), 2U);
    return;
  }
  if (result->form == AnswerForm::tool) {
    EXPECT_TRUE(contract.tools && result->tool);
    EXPECT_EQ(result->source + result->plan, "");
    EXPECT_EQ(takes_source(result->tool->tool), !result->tool->source.empty());
    EXPECT_EQ(takes_source(result->tool->tool), result->tool->what.empty());
    if (takes_source(result->tool->tool)) check_source(result->tool->source, contract);
    return;
  }
  EXPECT_FALSE(result->tool);
  EXPECT_TRUE(contract.sources);
  check_source(result->source, contract);
}

void try_one(const std::string& text, Rng& rng) {
  AnswerContract contract;
  contract.sources = rng.chance(0.9);
  contract.plans = rng.chance(0.5);
  contract.tools = rng.chance(0.7);
  if (rng.chance(0.7)) contract.base = kBase + "// before\n";
  contract.source_bytes_max = 4000;
  const auto finish = static_cast<FinishReason>(rng.below(4));
  const AnswerResult whole = parse_answer(text, finish, contract);
  check(whole, contract);
  AnswerStream stream(contract);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto count = static_cast<size_t>(1 + rng.below(30));
    const auto early = stream.feed({rest.substr(0, count)});
    if (early) {
      check(*early, contract);
      EXPECT_FALSE(early->tool) << "tools wait for the end";
    }
    rest.remove_prefix(std::min(count, rest.size()));
  }
  const AnswerResult streamed = stream.finish(finish);
  ASSERT_EQ(streamed.has_value(), whole.has_value());
  EXPECT_EQ(streamed ? streamed->source : "", whole ? whole->source : "");
  EXPECT_EQ(streamed ? streamed->tool : std::nullopt, whole ? whole->tool : std::nullopt);
}

TEST(AnswerFuzz, NothingCrashesOrIsAcceptedEmpty) {
  const char* chosen = std::getenv("KE_FUZZ_SEED");
  const uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  const uint64_t count = chosen == nullptr ? 4000 : 1;
  for (uint64_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("KE_FUZZ_SEED=" + std::to_string(seed));
    Rng rng(seed);
    try_one(mutated(rng.pick(seeds()), rng), rng);
  }
}

TEST(AnswerFuzz, EveryPrefixOfEveryAnswerIsReadSafely) {
  Rng rng(7);
  for (const std::string& seed : seeds()) {
    for (size_t length = 0; length <= seed.size(); ++length) try_one(seed.substr(0, length), rng);
  }
}

// Texts on which a careless search for lines would take hours.
TEST(AnswerFuzz, LongRepetitionsAreReadInLinearTime) {
  AnswerContract contract;
  for (int i = 0; i < 200'000; ++i) contract.base += "\n";
  contract.base += "int ke_launch();\n";
  std::string wanted(100'000, '\n');
  const std::string edit = "<<<<<<< SEARCH\n" + wanted + "x\n=======\ny\n>>>>>>> REPLACE\n";
  EXPECT_EQ(parse_answer(edit, FinishReason::stop, contract).error().fault,
            AnswerFault::not_found);
  const std::string blank = "<<<<<<< SEARCH\n" + wanted + "=======\ny\n>>>>>>> REPLACE\n";
  EXPECT_EQ(parse_answer(blank, FinishReason::stop, contract).error().fault,
            AnswerFault::ambiguous);
  std::string many;
  for (int i = 0; i < 50'000; ++i) many += "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
  EXPECT_EQ(parse_answer(many, FinishReason::stop, contract).error().fault, AnswerFault::bad_edit);
  const std::string marks(2'000'000, '`');
  EXPECT_FALSE(parse_answer(marks, FinishReason::stop, contract));
  AnswerStream stream(contract);
  for (int i = 0; i < 500'000; ++i) EXPECT_FALSE(stream.feed({"abcd"}));
}

}  // namespace
}  // namespace ke::llm
