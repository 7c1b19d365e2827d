// SPDX-License-Identifier: Apache-2.0
#include "propose/model/prompt.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "golden.hpp"
#include "os/file_system.hpp"
#include "propose/model/fake_ground.hpp"
#include "propose/model/tasks.hpp"
#include "propose/model/testing.hpp"

namespace ke::model {
namespace {

using testing_support::matches_golden;

// A library of one document of some length.
class OneDocument final : public testing_support::FakeGround {
 public:
  explicit OneDocument(std::string text)
      : FakeGround({{"guidance/rows.md", "Row reductions", std::move(text), {}}}) {}
  Result<std::string> use(const llm::ToolCall&) override { return pages.front().text; }
};

class Prompt : public testing_support::History {
 protected:
  ModelTask task(const ProposalContext& asked, ModelStyle style, PromptOptions options = {}) {
    Result<std::optional<ModelTask>> made = make_task(asked, style, options);
    EXPECT_TRUE(made) << made.error().to_string();
    EXPECT_TRUE(made->has_value());
    return std::move(**made);
  }
  static std::string text_of(const ModelTask& task) { return llm::plain_text(task.request); }
  static bool has(const ModelTask& task, std::string_view words) {
    return text_of(task).find(words) != std::string::npos;
  }
  NodeId parent() {
    const NodeId root = add({.plan = greedy_plan(), .note = "draft: greedy fusion",
                             .evaluation = accepted(1.2, 2000)});
    return add({.kind = NodeKind::mutate,
                .parents = {root},
                .source = "// ke:tune N in {1, 2}\nconstexpr int N = 1;\nint ke_launch() {\n  "
                          "return 0;\n}\n",
                .plan = greedy_plan(),
                .note = "kernel0 block 32 -> 64",
                .evaluation = accepted(1.5, 1600)});
  }
  NodeId failed(NodeId from) {
    return add({.kind = NodeKind::mutate,
                .parents = {from},
                .proposer = "llm",
                .source = "int ke_launch() { return x; }\n",
                .note = "Use ```wide``` vectors\n# and more",
                .evaluation = rejected(Verdict::compile_error, "it does not compile: kernel.cpp:1",
                                       "/room/kernel.cpp:1:25: error: 'x' was not declared\n")});
  }
};

TEST_F(Prompt, GoldenDraftOfASource) {
  const ModelTask made = task(context(NodeKind::draft), ModelStyle::source);
  EXPECT_TRUE(matches_golden(text_of(made), "prompt/source_draft.md"));
}

TEST_F(Prompt, GoldenChangeOfASource) {
  const NodeId from = parent();
  failed(from);
  OneDocument library("Keep partial sums in registers.\n");
  const ModelTask made = task(context(NodeKind::mutate, {from}), ModelStyle::source,
                              {.ground = &library});
  EXPECT_TRUE(matches_golden(made.request.messages[0].text, "prompt/source_mutate.md"));
  EXPECT_EQ(made.documents, std::vector<std::string>{"guidance/rows.md"});
  EXPECT_EQ(made.parents, std::vector{from});
  EXPECT_EQ(made.contract.base, graph_.node(from)->source);
}

TEST_F(Prompt, GoldenRepairOfASource) {
  const ModelTask made =
      task(context(NodeKind::mutate, {failed(parent())}), ModelStyle::source);
  EXPECT_TRUE(matches_golden(made.request.messages[0].text, "prompt/source_repair.md"));
}

TEST_F(Prompt, GoldenChangeOfAPlan) {
  const ModelTask made = task(context(NodeKind::mutate, {parent()}), ModelStyle::plan);
  EXPECT_TRUE(matches_golden(text_of(made), "prompt/plan_mutate.md"));
  EXPECT_TRUE(made.contract.plans);
  EXPECT_FALSE(made.contract.sources);
}

TEST_F(Prompt, TheStablePartIsTheSameForEveryTaskOfAStyle) {
  const NodeId from = parent();
  const std::string draft = task(context(NodeKind::draft), ModelStyle::source).request.stable;
  EXPECT_EQ(task(context(NodeKind::mutate, {from}), ModelStyle::source).request.stable, draft);
  EXPECT_NE(draft.find("int ke_launch(const ke_tensor* inputs"), std::string::npos);
}

TEST_F(Prompt, SameContextSamePrompt) {
  const NodeId from = parent();
  const auto digest = [&] {
    return llm::prompt_digest(task(context(NodeKind::mutate, {from}), ModelStyle::source).request);
  };
  EXPECT_EQ(digest(), digest());
}

TEST_F(Prompt, CrossesShowBothKernelsUnlessTheSecondDoesNotFit) {
  const NodeId a = add({.source = "int ke_launch_a;\n", .evaluation = accepted(1.5)});
  const NodeId b = add({.source = "int b[] = {" + std::string(12'000, '1') + "};\n",
                        .evaluation = accepted(1.6)});
  const ModelTask both = task(context(NodeKind::cross, {a, b}), ModelStyle::source);
  EXPECT_EQ(both.parents, (std::vector{a, b}));
  EXPECT_EQ(both.kind, NodeKind::cross);
  EXPECT_TRUE(has(both, "# Second kernel"));
  EXPECT_TRUE(has(both, "Join the two kernels"));
  const ModelTask one =
      task(context(NodeKind::cross, {a, b}), ModelStyle::source, {.tokens_max = 4000});
  EXPECT_EQ(one.parents, std::vector{a});
  EXPECT_EQ(one.kind, NodeKind::mutate);
  EXPECT_FALSE(has(one, "# Second kernel"));
  EXPECT_FALSE(has(one, "Join the two kernels"));
}

TEST_F(Prompt, ShowsTheProblemsFileButNotWhereItLies) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create("prompt-test");
  problem_.path = folder.path() / "problem.py";
  std::ofstream(problem_.path) << "class Model: ...\n";
  const ModelTask made = task(context(NodeKind::draft), ModelStyle::source);
  EXPECT_TRUE(has(made, "```python\nclass Model: ...\n```"));
  EXPECT_FALSE(has(made, folder.path().string()));
  std::ofstream(problem_.path) << std::string(100'000, '#');
  EXPECT_FALSE(has(task(context(NodeKind::draft), ModelStyle::source), "```python"));
}

ir::Graph long_graph() {
  ir::Graph graph;
  for (int i = 0; i < 200; ++i) {
    graph.values.push_back({.name = fmt::format("value_number_{}", i), .shape = {16, 64}});
  }
  graph.inputs = {{ir::ValueId{0}, ir::InputKind::argument}};
  for (int i = 1; i < 200; ++i) {
    graph.nodes.push_back(
        {"aten.relu.default", {ir::Arg{ir::ValueId{i - 1}}}, {}, {ir::ValueId{i}}});
  }
  graph.outputs = {ir::ValueId{199}};
  return graph;
}

// What gives way, as the limit falls.
TEST_F(Prompt, ShrinksDocumentsThenHistoryThenTheGraphNeverTheBase) {
  const os::TemporaryDirectory folder = *os::TemporaryDirectory::create("prompt-test");
  problem_.path = folder.path() / "problem.py";
  std::ofstream(problem_.path) << "class Model: ...\n";
  problem_.graph = long_graph();
  const NodeId from = parent();
  OneDocument library(std::string(200, 'd') + "\n" + std::string(8000, 'e') + "\n");
  const ProposalContext asked = context(NodeKind::mutate, {from});
  int order = 0;
  for (int64_t limit = 12'000; limit > 0; limit -= 50) {
    SCOPED_TRACE(testing::Message() << limit << " tokens");
    const auto made = make_task(asked, ModelStyle::source,
                                {.tokens_max = limit, .ground = &library});
    if (!made) {
      EXPECT_EQ(made.error().code, Errc::refused);
      EXPECT_EQ(order, 3) << "refused only when everything else is gone";
      break;
    }
    const ModelTask& one = **made;
    int64_t tokens = llm::estimate_tokens(one.request.stable);
    tokens += llm::estimate_tokens(one.request.messages[0].text);
    EXPECT_LE(tokens, limit + 1);
    const bool documents = has(one, "# Documents"), history = has(one, "# What was tried"),
               graph = has(one, "value_number_1"), base = has(one, "constexpr int N = 1;");
    EXPECT_EQ(documents, !one.documents.empty());
    const int now = documents ? 0 : history ? 1 : graph ? 2 : 3;
    EXPECT_GE(now, order) << "nothing comes back";
    EXPECT_TRUE(!documents || (history && graph));
    EXPECT_TRUE(!history || graph);
    EXPECT_TRUE(base && has(one, "# Kernel contract") && has(one, "# Request"));
    order = now;
  }
  EXPECT_EQ(order, 3);
}

TEST_F(Prompt, RefusesWithoutAnyFormOfTheProblem) {
  problem_.graph = long_graph();
  const NodeId from = parent();
  bool refused = false;
  for (int64_t limit = 12'000; limit > 0 && !refused; limit -= 50) {
    const auto made =
        make_task(context(NodeKind::mutate, {from}), ModelStyle::source, {.tokens_max = limit});
    refused = !made;
    if (made) {
      EXPECT_TRUE(has(**made, "value_number_1"));
    } else {
      EXPECT_NE(made.error().message.find("allow more"), std::string::npos);
    }
  }
  EXPECT_TRUE(refused);
}

TEST_F(Prompt, APlanNeedsAPlan) {
  const NodeId written = add({.source = "int ke_launch();\n", .evaluation = accepted(1.5)});
  const auto none = make_task(context(NodeKind::mutate, {written}), ModelStyle::plan, {});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  EXPECT_TRUE(make_task(context(NodeKind::draft), ModelStyle::plan, {})->has_value());
  has_program_ = false;
  EXPECT_FALSE(make_task(context(NodeKind::draft), ModelStyle::plan, {})->has_value());
}

// --- Answers ------------------------------------------------------------------------------------

TEST_F(Prompt, SourcesBecomeProposals) {
  const NodeId from = parent();
  const ProposalContext asked = context(NodeKind::mutate, {from});
  const ModelTask made = task(asked, ModelStyle::source);
  const std::string answer =
      "Unroll by two.\n```\n<<<<<<< SEARCH\nconstexpr int N = 1;\n=======\nconstexpr int N = 2;\n"
      ">>>>>>> REPLACE\n```\n";
  const llm::AnswerResult parsed =
      llm::parse_answer(answer, llm::FinishReason::stop, made.contract);
  const ModelProposal result = *proposal_of(asked, made, parsed);
  ASSERT_TRUE(result.proposal) << result.fault;
  EXPECT_NE(result.proposal->source.find("constexpr int N = 2;"), std::string::npos);
  EXPECT_EQ(result.proposal->note, "Unroll by two.");
  EXPECT_EQ(result.proposal->parents, std::vector{from});
  EXPECT_EQ(result.proposal->plan, "");
  known_.insert(normalised_digest(result.proposal->source));
  EXPECT_NE(proposal_of(asked, made, parsed)->fault.find("tried before"), std::string::npos);
}

TEST_F(Prompt, FaultsAreHandedOn) {
  const ProposalContext asked = context(NodeKind::draft);
  const ModelTask made = task(asked, ModelStyle::source);
  const llm::AnswerResult nothing =
      llm::parse_answer("I cannot.", llm::FinishReason::stop, made.contract);
  const ModelProposal result = *proposal_of(asked, made, nothing);
  EXPECT_FALSE(result.proposal);
  EXPECT_EQ(result.fault, nothing.error().sentence);
  const llm::CompletionRequest next = follow_up(made, "I cannot.", result.fault);
  ASSERT_EQ(next.messages.size(), 3u);
  EXPECT_EQ(next.stable, made.request.stable);
  EXPECT_EQ(next.messages[1], (llm::Message{llm::Role::assistant, "I cannot."}));
  EXPECT_NE(next.messages[2].text.find(result.fault), std::string::npos);
}

// --- Tools --------------------------------------------------------------------------------------

TEST_F(Prompt, GoldenConversationWithATool) {
  const NodeId from = parent();
  const ProposalContext asked = context(NodeKind::mutate, {from});
  OneDocument library("The text of a document with a fence:\n```cpp\nint x;\n```\n");
  const std::unique_ptr<ModelTasks> tasks = prompted_tasks({.ground = &library});
  const ModelTask made = **tasks->make(asked, ModelStyle::source, std::nullopt);
  ASSERT_TRUE(made.contract.tools);
  const std::string answer =
      "First I look.\n```tool\n{\"tool\": \"read\", \"path\": \"guidance/rows.md\"}\n```\n";
  const llm::AnswerResult parsed =
      llm::parse_answer(answer, llm::FinishReason::stop, made.contract);
  const ModelProposal read = *tasks->proposal(asked, made, parsed);
  EXPECT_FALSE(read.proposal);
  ASSERT_TRUE(read.call);
  const ToolUse use = *tasks->use(*read.call);
  const llm::CompletionRequest next = tasks->go_on(made, answer, use, 5);
  ASSERT_EQ(next.messages.size(), 3u);
  EXPECT_EQ(next.stable, made.request.stable);
  EXPECT_EQ(next.messages[1].text, answer);
  EXPECT_TRUE(matches_golden(next.messages[2].text, "prompt/tool_result.md"));
  const size_t tools = next.stable.find("# Tools");
  ASSERT_NE(tools, std::string::npos);
  EXPECT_TRUE(matches_golden(next.stable.substr(tools), "prompt/tools.md"));
  // And on: the last use says so.
  ModelTask second = made;
  second.request = next;
  const llm::CompletionRequest last = tasks->go_on(second, answer, use, 0);
  ASSERT_EQ(last.messages.size(), 5u);
  EXPECT_NE(last.messages[4].text.find("No other tool can be used"), std::string::npos);
}

TEST_F(Prompt, WithoutAGroundAndForPlansThereAreNoTools) {
  const NodeId from = parent();
  OneDocument library("text\n");
  const ModelTask bare = task(context(NodeKind::mutate, {from}), ModelStyle::source);
  const ModelTask plan =
      task(context(NodeKind::mutate, {from}), ModelStyle::plan, {.ground = &library});
  for (const ModelTask* one : {&bare, &plan}) {
    EXPECT_FALSE(one->contract.tools);
    EXPECT_FALSE(has(*one, "# Tools"));
  }
}

TEST_F(Prompt, WhatAToolGaveIsCutOnceAndReadBackTheSame) {
  const std::string line(99, 'x');
  std::string text;
  for (int i = 0; i < 1000; ++i) text += line + "\n";
  const std::string cut = tool_text(text);
  EXPECT_LT(cut.size(), size_t{16 << 10} + 1);
  EXPECT_NE(cut.find("more lines are not shown"), std::string::npos);
  EXPECT_EQ(tool_text(cut), cut);
  const std::string hostile = tool_text("\xFF\x01 ```\n");
  EXPECT_EQ(tool_text(hostile), hostile);
  ToolUse use;
  use.call.tool = llm::Tool::find;
  use.call.by = llm::FindBy::regex;
  use.call.what = "a+";
  use.result = hostile;
  const ToolUse back = *decode_tool_use(*parse_json(dump_json(encode(use))));
  EXPECT_EQ(back.call, use.call);
  EXPECT_EQ(back.result, use.result);
  EXPECT_FALSE(decode_tool_use(*parse_json(R"({"tool": {"tool": "run"}, "result": ""})")));
}

TEST_F(Prompt, PlansAreEditedCompletedAndPrinted) {
  const NodeId from = parent();
  const ProposalContext asked = context(NodeKind::mutate, {from});
  const ModelTask made = task(asked, ModelStyle::plan);
  const auto answered = [&](const std::string& json) {
    return *proposal_of(asked, made,
                        llm::parse_answer("Larger blocks.\n```json\n" + json + "\n```\n",
                                          llm::FinishReason::stop, made.contract));
  };
  const std::string edit =
      R"({"edits": [{"op": "set", "kernel": 0, "decision": "block", "value": 128}]})";
  const ModelProposal result = answered(edit);
  ASSERT_TRUE(result.proposal) << result.fault;
  EXPECT_NE(result.proposal->source.find("block=128"), std::string::npos);
  EXPECT_NE(result.proposal->source.find("split=1"), std::string::npos) << "completed";
  EXPECT_EQ(result.proposal->note, "Larger blocks.");
  const Result<ir::Plan> stored =
      ir::decode_plan(*parse_json(result.proposal->plan), program_);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->kernels[0].schedule.at("block"), 128);
  EXPECT_NE(answered(R"({"edits": [{"op": "set", "kernel": 0, "decision": "block", "value": 32}]})")
                .fault.find("the one you were given"),
            std::string::npos);
  EXPECT_NE(answered(R"({"edits": [{"op": "set", "kernel": 9, "decision": "block", "value": 32}]})")
                .fault.find("there is no kernel 9"),
            std::string::npos);
  known_.insert(normalised_digest(result.proposal->source));
  EXPECT_NE(answered(edit).fault.find("tried before"), std::string::npos);
  target_.refuses_contractions = true;
  known_.clear();
  EXPECT_NE(answered(edit).fault.find("no contractions"), std::string::npos);
}

}  // namespace
}  // namespace ke::model
