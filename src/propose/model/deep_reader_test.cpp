// SPDX-License-Identifier: Apache-2.0
//
// Deep search as a model runs it: what it is shown, what it may choose, and what its searches find.
#include "propose/model/deep_reader.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.hpp"
#include "base/rng.hpp"
#include "golden.hpp"
#include "propose/model/context_memory.hpp"
#include "propose/model/fake_ground.hpp"
#include "propose/model/testing.hpp"

namespace ke {
namespace {

const std::vector<std::string> kShown = {"guidance/rows.md", "guidance/tiles.md"};

std::string json_block(const std::string& json) { return "```json\n" + json + "\n```\n"; }

auto read_json(const std::string& json) {
  return read_choice(json_block(json), llm::FinishReason::stop, kShown);
}

std::vector<PromptDocument> three_pages() {
  return {{"guidance/rows.md", "Row reductions", "Read each row once.\nMore.\n", {}},
          {"guidance/tiles.md", "Tiles", "Keep a tile in registers.\n", {}},
          {"hidden/barriers.md", "Barriers", "Threads wait at barriers.\n", {}}};
}

class DeepReader : public testing_support::History {
 protected:
  ProposalContext asked(const Advice* advice) {
    ProposalContext made = context(NodeKind::mutate, {from_});
    made.advice = advice;
    return made;
  }
  NodeId from_ = add({.source = "int ke_launch;\n", .evaluation = accepted(1.5, 1600)});
  testing_support::FakeGround library_{three_pages()};
  const Advice advice_{.diagnosis = Diagnosis{.bound = "latency",
                                              .evidence = {"One addition a cycle."},
                                              .tried = {},
                                              .directives = {"Use four partial sums."}},
                       .documents = {},
                       .shown = {}};
};

TEST_F(DeepReader, GoldenQuestionAndSearches) {
  const auto made = make_reader_task(asked(&advice_), ModelStyle::source, {.ground = &library_});
  ASSERT_TRUE(made) << made.error().to_string();
  const ModelTask& task = **made;
  EXPECT_EQ(task.agent, Agent::deep_search);
  const std::string text = llm::plain_text(task.request);
  EXPECT_TRUE(testing_support::matches_golden(text, "prompt/deep_search.md"));
  EXPECT_EQ(library_.asked_about, *advice_.diagnosis) << "the diagnosis is the query";
  const std::string answer = json_block(
      R"({"searches": [{"query": "barriers"}, {"regex": "("}, {"name": "none"}]})");
  const auto read = read_choice(answer, llm::FinishReason::stop, kShown);
  ASSERT_TRUE(read) << read.error().sentence;
  std::vector<Found> found;
  for (const llm::ToolCall& search : read->searches) found.push_back(*library_.look_up(search));
  const llm::CompletionRequest next = go_on_reading(task, answer, found, 1);
  ASSERT_EQ(next.messages.size(), 3u);
  EXPECT_EQ(next.messages[1].text, answer);
  EXPECT_TRUE(testing_support::matches_golden(next.messages[2].text, "prompt/search_result.md"));
  EXPECT_NE(go_on_reading(task, answer, found, 0).messages[2].text.find("cannot search again"),
            std::string::npos);
  EXPECT_EQ(*decode_found(*parse_json(dump_json(encode(found)))), found);
}

TEST_F(DeepReader, WithoutADiagnosisByAModelTheEmbeddedOneIsTheQuery) {
  const Advice none;
  const auto made = make_reader_task(asked(&none), ModelStyle::source, {.ground = &library_});
  ASSERT_TRUE(made && *made);
  EXPECT_EQ(library_.asked_about, *diagnose(context(NodeKind::mutate, {from_})));
  EXPECT_FALSE((*made)->ground.diagnosis);
  EXPECT_EQ((*made)->ground.shown.size(), 2u);
}

TEST_F(DeepReader, NothingIsAskedWhereThereIsNothingToChoose) {
  library_.pages.clear();
  EXPECT_FALSE(make_reader_task(asked(&advice_), ModelStyle::source, {.ground = &library_})
                   ->has_value());
  EXPECT_FALSE(make_reader_task(asked(&advice_), ModelStyle::source, {})->has_value());
}

TEST(ReadChoice, DocumentsKeepTheirOrderAndAreTakenOnce) {
  const auto read = read_json(
      R"({"documents": [{"path": "guidance/tiles.md", "reason": "registers"},
                        {"path": "guidance/rows.md", "reason": "rows `x`"},
                        {"path": "guidance/tiles.md", "reason": "again"}]})");
  ASSERT_TRUE(read) << read.error().sentence;
  EXPECT_EQ(*read->documents, (std::vector<ChosenDocument>{{"guidance/tiles.md", "registers"},
                                                           {"guidance/rows.md", "rows 'x'"}}));
  EXPECT_TRUE(read->searches.empty());
  EXPECT_TRUE(read_json(R"({"documents": []})")->documents->empty()) << "none may help";
}

TEST(ReadChoice, SearchesAreOfFourKinds) {
  const auto read = read_json(
      R"({"searches": [{"query": "a b"}, {"string": "x"}, {"regex": "[ab]+"}, {"name": "rows"}]})");
  ASSERT_TRUE(read) << read.error().sentence;
  EXPECT_FALSE(read->documents);
  const std::vector<llm::ToolCall> wanted = {{llm::Tool::search, llm::FindBy::text, "a b", ""},
                                             {llm::Tool::find, llm::FindBy::text, "x", ""},
                                             {llm::Tool::find, llm::FindBy::regex, "[ab]+", ""},
                                             {llm::Tool::find, llm::FindBy::path, "rows", ""}};
  EXPECT_EQ(read->searches, wanted);
}

TEST(ReadChoice, EverythingElseIsAFaultWithASentence) {
  const std::string search = R"({"query": "x"},)";
  const struct {
    std::string json;
    std::string says;
  } cases[] = {
      {"{}", "either documents or searches"},
      {R"({"documents": [], "searches": [{"query": "x"}]})", "either documents or searches"},
      {R"({"documents": [], "note": "x"})", "either documents or searches"},
      {R"({"documents": {}})", "'documents' is no list"},
      {R"({"documents": ["guidance/rows.md"]})", "a document is not a JSON object"},
      {R"({"documents": [{"path": "guidance/rows.md"}]})", "lacks the field 'reason'"},
      {R"({"documents": [{"path": "guidance/none.md", "reason": "x"}]})",
       "'guidance/none.md' is no document that you were shown"},
      {R"({"documents": [{"path": "guidance/rows.md", "reason": "x", "line": 3}]})",
       "path and reason, and nothing else"},
      {R"({"documents": [{"path": "guidance/rows.md", "reason": ")" + std::string(301, 'x') +
           R"("}]})",
       "a reason has 301 bytes"},
      {R"({"searches": []})", "names none"},
      {R"({"searches": [)" + search + search + search + search + R"({"query": "x"}]})",
       "at most 4"},
      {R"({"searches": [{"query": "x", "regex": "y"}]})", "one of query, string"},
      {R"({"searches": [{"glob": "x"}]})", "one of query, string"},
      {R"({"searches": [{"string": " "}]})", "its 'string' is empty"},
      {R"({"searches": [{"regex": "a\nb"}]})", "more than one line"},
  };
  for (const auto& one : cases) {
    const auto read = read_json(one.json);
    ASSERT_FALSE(read) << one.json;
    EXPECT_EQ(read.error().fault, llm::AnswerFault::bad_fields) << one.json;
    EXPECT_NE(read.error().sentence.find(one.says), std::string::npos) << read.error().sentence;
  }
}

// Answers made of pieces of good and bad ones: whatever is accepted keeps every limit.
TEST(AdviceFuzz, WhatIsAcceptedKeepsItsLimits) {
  const std::vector<std::string> pieces{
      "{",          "}",       "[",      "]",      ",",       ":",         "\"bound\"",
      "\"memory\"", "\"evidence\"", "\"tried\"", "\"directives\"", "\"documents\"",
      "\"searches\"", "\"path\"", "\"guidance/rows.md\"", "\"reason\"", "\"x\"", "\"regex\"",
      "null",       "1",       "\"\\n\"", "\"\\u0000\"", "\xFF", "[\"x\"]", "[]",
      R"({"documents": [{"path": "guidance/rows.md", "reason": "x"}]})",
      R"({"searches": [{"query": "x"}]})",
      R"({"bound": "memory", "evidence": [], "tried": [], "directives": ["x"]})"};
  const char* chosen = std::getenv("KE_FUZZ_SEED");
  const uint64_t first = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
  const uint64_t count = chosen == nullptr ? 3000 : 1;
  int64_t diagnoses = 0, choices = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("KE_FUZZ_SEED=" + std::to_string(seed));
    Rng rng(seed);
    std::string text = rng.pick(pieces);
    for (int64_t i = rng.below(4); i > 0; --i) {
      text.insert(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()) + 1)),
                  rng.pick(pieces));
    }
    const std::string answer = rng.chance(0.5) ? json_block(text) : text;
    if (const auto read = read_diagnosis(answer, llm::FinishReason::stop)) {
      ++diagnoses;
      EXPECT_NE(std::ranges::find(kBounds, read->bound), kBounds.end());
      EXPECT_FALSE(read->directives.empty());
      for (const std::string& line : read->directives) {
        EXPECT_EQ(line.find_first_of("\n`"), std::string::npos);
      }
    }
    if (const auto read = read_choice(answer, llm::FinishReason::stop, kShown)) {
      ++choices;
      EXPECT_EQ(read->documents.has_value(), read->searches.empty());
      for (const ChosenDocument& one : read->documents.value_or(std::vector<ChosenDocument>())) {
        EXPECT_NE(std::ranges::find(kShown, one.path), kShown.end());
      }
    }
  }
  if (chosen == nullptr) {
    EXPECT_GE(diagnoses, 10);
    EXPECT_GE(choices, 10);
  }
}

}  // namespace
}  // namespace ke
