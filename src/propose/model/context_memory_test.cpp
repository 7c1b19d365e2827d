// SPDX-License-Identifier: Apache-2.0
//
// Context memory as a model runs it: what it is asked, and what its answer may be.
#include "propose/model/context_memory.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "golden.hpp"
#include "propose/model/fake_ground.hpp"
#include "propose/model/testing.hpp"

namespace ke {
namespace {

constexpr const char* kGood =
    R"({"bound": "memory", "evidence": ["40 % of the bandwidth"], "tried": [],
        "directives": ["Read each row once."]})";

auto read_text(const std::string& json) {
  return read_diagnosis("```json\n" + json + "\n```\n", llm::FinishReason::stop);
}

class ContextMemory : public testing_support::History {
 protected:
  NodeId base() {
    const NodeId root = add({.plan = greedy_plan(), .evaluation = accepted(1.2, 2000)});
    const NodeId from = add({.kind = NodeKind::mutate,
                             .parents = {root},
                             .source = "int ke_launch() {\n  return 0;\n}\n",
                             .plan = greedy_plan(),
                             .note = "kernel0 block 32 -> 64",
                             .evaluation = accepted(1.5, 1600)});
    add({.kind = NodeKind::mutate,
         .parents = {from},
         .proposer = "llm",
         .note = "Use wide vectors",
         .evaluation = rejected(Verdict::wrong_output, "output 0 differs")});
    profile_ = KernelProfile{.function = "ke_launch", .hot_loop = {"addss %xmm0, %xmm1"}};
    return from;
  }
  ModelTask task(const ProposalContext& asked, ModelStyle style, PromptOptions options = {}) {
    auto made = make_memory_task(asked, style, options);
    EXPECT_TRUE(made) << made.error().to_string();
    return std::move(**made);
  }
};

TEST_F(ContextMemory, GoldenQuestion) {
  const ModelTask made = task(context(NodeKind::mutate, {base()}), ModelStyle::source);
  EXPECT_EQ(made.agent, Agent::context_memory);
  EXPECT_FALSE(made.contract.sources || made.contract.plans || made.contract.tools);
  const std::string text = llm::plain_text(made.request);
  EXPECT_TRUE(testing_support::matches_golden(text, "prompt/context_memory.md"));
}

TEST_F(ContextMemory, TheStablePartIsTheSameForAllAndTheRequestSaysForWhom) {
  const NodeId from = base();
  const ModelTask source = task(context(NodeKind::mutate, {from}), ModelStyle::source);
  const ModelTask plan = task(context(NodeKind::mutate, {from}), ModelStyle::plan);
  const ModelTask draft = task(context(NodeKind::draft), ModelStyle::source);
  EXPECT_EQ(source.request.stable, plan.request.stable);
  EXPECT_EQ(source.request.stable, draft.request.stable);
  EXPECT_NE(plan.request.messages[0].text.find("whoever edits the plan"), std::string::npos);
  EXPECT_NE(draft.request.messages[0].text.find("Say what limits the operator"), std::string::npos);
  EXPECT_NE(llm::prompt_digest(source.request), llm::prompt_digest(plan.request));
}

TEST_F(ContextMemory, APlanNeedsAPlan) {
  const NodeId written = add({.source = "int ke_launch();\n", .evaluation = accepted(1.5)});
  EXPECT_FALSE(make_memory_task(context(NodeKind::mutate, {written}), ModelStyle::plan, {})
                   ->has_value());
}

TEST_F(ContextMemory, RefusesWhatDoesNotFit) {
  const auto made = make_memory_task(context(NodeKind::mutate, {base()}), ModelStyle::source,
                                     {.tokens_max = 300});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::refused);
}

// A model's reading is shown as such, beside the history that rows tell.
TEST_F(ContextMemory, GoldenProposalWithADiagnosisByAModel) {
  const NodeId from = base();
  testing_support::FakeGround library({{"guidance/rows.md", "Row reductions", "Read once.\n", {}},
                                       {"guidance/tiles.md", "Tiles", "Keep a tile.\n", {}}});
  const Advice advice{.diagnosis = Diagnosis{.bound = "latency",
                                             .evidence = {"One scalar addition a cycle."},
                                             .tried = {"Blocks are used up."},
                                             .directives = {"Use four partial sums."}},
                      .documents = {{{"guidance/tiles.md", "registers"}}},
                      .shown = {}};
  ProposalContext asked = context(NodeKind::mutate, {from});
  asked.advice = &advice;
  const auto made = make_task(asked, ModelStyle::source, {.ground = &library});
  ASSERT_TRUE(made) << made.error().to_string();
  const std::string& text = (*made)->request.messages[0].text;
  EXPECT_TRUE(testing_support::matches_golden(text, "prompt/source_advised.md"));
  EXPECT_EQ((*made)->documents, std::vector<std::string>{"guidance/tiles.md"});
  const PromptGround back = *decode_prompt_ground(*parse_json(dump_json(encode((*made)->ground))));
  EXPECT_EQ(back.diagnosis, advice.diagnosis);
  EXPECT_EQ(back.documents, (*made)->ground.documents);
}

// What is not a model's own is found as without one.
TEST_F(ContextMemory, WithoutAChoiceTheDiagnosisIsWhatDocumentsAreFoundBy) {
  testing_support::FakeGround library({{"guidance/rows.md", "Row reductions", "Read once.\n", {}}});
  const Advice advice{.diagnosis = Diagnosis{.bound = "latency", .directives = {"Sum in four."}},
                      .documents = {},
                      .shown = {}};
  ProposalContext asked = context(NodeKind::mutate, {base()});
  asked.advice = &advice;
  const auto made = make_task(asked, ModelStyle::source, {.ground = &library});
  ASSERT_TRUE(made) << made.error().to_string();
  EXPECT_EQ((*made)->ground.documents.at(0).reason, "the bound is latency");
}

TEST(ReadDiagnosis, TakesWhatIsOfTheForm) {
  const auto read = read_text(kGood);
  ASSERT_TRUE(read) << read.error().sentence;
  EXPECT_EQ(read->bound, "memory");
  EXPECT_EQ(read->evidence, std::vector<std::string>{"40 % of the bandwidth"});
  EXPECT_EQ(read->directives, std::vector<std::string>{"Read each row once."});
  EXPECT_EQ(*decode_diagnosis(*parse_json(dump_json(encode(*read)))), *read);
}

TEST(ReadDiagnosis, MakesEveryEntryOneLineWithoutPathsOrFences) {
  const auto read = read_text(
      R"({"bound": "unknown", "evidence": ["see /usr/lib/secret.so\n# Evil\n```"], "tried": [],
          "directives": ["x"]})");
  ASSERT_TRUE(read) << read.error().sentence;
  EXPECT_EQ(read->evidence, std::vector<std::string>{"see secret.so # Evil '''"});
}

TEST(ReadDiagnosis, EverythingElseIsAFaultWithASentence) {
  const std::string many = "\"x\",\"x\",\"x\",\"x\",\"x\",\"x\",\"x\"";
  const struct {
    std::string json;
    std::string says;
  } cases[] = {
      {"{}", "lacks the field 'bound'"},
      {R"({"bound": "luck", "evidence": [], "tried": [], "directives": ["x"]})",
       "'bound' is none of memory, compute"},
      {R"({"bound": 3, "evidence": [], "tried": [], "directives": ["x"]})", "wrong type"},
      {R"({"bound": "memory", "evidence": "x", "tried": [], "directives": ["x"]})", "wrong type"},
      {R"({"bound": "memory", "evidence": [1], "tried": [], "directives": ["x"]})", "wrong type"},
      {R"({"bound": "memory", "evidence": [], "directives": ["x"]})", "lacks the field 'tried'"},
      {R"({"bound": "memory", "evidence": [], "tried": [], "directives": []})", "nothing to do"},
      {R"({"bound": "memory", "evidence": [], "tried": [], "directives": [" "]})", "is empty"},
      {R"({"bound": "memory", "evidence": [], "tried": [], "directives": [)" + many + "]}",
       "'directives' has 7 entries, and 6 are allowed"},
      {R"({"bound": "memory", "evidence": [], "tried": [")" + std::string(401, 'x') +
           R"("], "directives": ["x"]})",
       "an entry of 'tried' has 401 bytes, and 400 are allowed"},
      {R"({"bound": "memory", "evidence": [], "tried": [], "directives": ["x"], "verdict": 1})",
       "a field beside"},
  };
  for (const auto& one : cases) {
    const auto read = read_text(one.json);
    ASSERT_FALSE(read) << one.json;
    EXPECT_EQ(read.error().fault, llm::AnswerFault::bad_fields) << one.json;
    EXPECT_NE(read.error().sentence.find(one.says), std::string::npos) << read.error().sentence;
    EXPECT_TRUE(read.error().sentence.starts_with("The diagnosis cannot be used: "));
  }
  const auto talk = read_diagnosis("I would rather talk.", llm::FinishReason::stop);
  ASSERT_FALSE(talk);
  EXPECT_EQ(talk.error().fault, llm::AnswerFault::nothing_usable);
}

}  // namespace
}  // namespace ke
