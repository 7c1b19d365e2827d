// SPDX-License-Identifier: Apache-2.0
//
// Runs whose sub-agents are run by a model: the stages of a conversation, what stands in when one
// fails, and that such a run is resumed and played again like any other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/json.hpp"
#include "llm/budget.hpp"
#include "model_fakes.hpp"
#include "search/replay.hpp"

namespace ke::sim {
namespace {

using Conversation = std::vector<ExchangeRow>;

SearchOptions advised_options(int64_t steps, std::vector<std::string> proposers = {"llm"}) {
  SearchOptions options = model_options(steps, std::move(proposers));
  options.models.calls = 1;
  options.models.sub_agents = SubAgents::model;
  return options;
}

std::vector<Conversation> talks_of(const GraphReader& graph, RunId run) {
  std::map<PromptId, size_t> of;
  std::vector<Conversation> all;
  std::vector<ExchangeRow> exchanges = *graph.exchanges(run);
  for (ExchangeRow& exchange : exchanges) {
    const PromptRow& row = exchange.prompt;
    if (!row.follows) all.emplace_back();
    const size_t at = row.follows ? of.at(row.follows) : all.size() - 1;
    of[row.id] = at;
    all[at].push_back(std::move(exchange));
  }
  return all;
}

std::vector<std::string> styles_of(const Conversation& talk) {
  std::vector<std::string> styles;
  for (const ExchangeRow& one : talk) styles.push_back(one.prompt.style);
  return styles;
}

bool says(const PromptRow& prompt, std::string_view words) {
  return prompt.request.find(words) != std::string::npos;
}

Result<ReplayReport> play_again(const Json& recorded) {
  const Recording recording = TRY(decode_recording(recorded));
  const RunDescription about =
      TRY(decode_run_description(TRY(parse_json(recording.run.description))));
  const testing_support::FakeTarget target;
  NullEvents events;
  const auto tasks = [](GroundSource& ground) { return std::make_unique<GenesTasks>(&ground); };
  const std::vector<const ProposerInfo*> proposers = {&kGenesProposer, &kIdleProposer};
  return replay(recording, {.target = target,
                            .about = about,
                            .programs = {},
                            .tasks = tasks,
                            .proposers = proposers,
                            .events = events});
}

const std::vector<std::string> kWhole = {"llm/context_memory", "llm/deep_search",
                                         "llm/deep_search", "llm"};

TEST(Advice, AConversationGoesThroughItsStagesAndCostsOneStep) {
  const auto store = make_memory_store();
  ModelWorld it(*store, advised_answer_of);
  const auto result = search(it.dependencies(), advised_options(3));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 3);
  const std::vector<Conversation> talks = talks_of(it.world.graph, result->run);
  ASSERT_EQ(talks.size(), 3u);
  for (const Conversation& talk : talks) {
    ASSERT_EQ(styles_of(talk), kWhole);
    EXPECT_TRUE(says(talk[1].prompt, "Change a pair of genes.")) << "the diagnosis is the query";
    EXPECT_TRUE(says(talk[1].prompt, "guidance/genes.md"));
    EXPECT_FALSE(says(talk[1].prompt, "hidden/optimum.md"));
    EXPECT_TRUE(says(talk[2].prompt, "hidden/optimum.md")) << "what the search found";
    EXPECT_TRUE(says(talk[3].prompt, "advised: Change a pair of genes."));
    EXPECT_TRUE(says(talk[3].prompt, "hidden/optimum.md: It is planted.\\n (it says where)"));
    for (const ExchangeRow& one : talk) {
      ASSERT_EQ(one.answers.size(), 1u);
      EXPECT_EQ(one.answers[0].fault, "");
    }
    const Json ground = *parse_json(talk[3].prompt.ground);
    EXPECT_EQ(ground["diagnosis"]["directives"][0].get<std::string>(), "Change a pair of genes.");
  }
  EXPECT_EQ(result->models.calls, 12);
  EXPECT_EQ(result->models.sub_agents.calls, 9);
  EXPECT_EQ(result->models.sub_agents.tokens, 9 * 150);
  EXPECT_EQ(result->models.tokens, 12 * 150);
  EXPECT_EQ(it.world.events.count("model.stand_in"), 0);
  const std::vector<NodeRow> nodes = *it.world.graph.nodes(result->run, false);
  for (const NodeRow& node : nodes) EXPECT_EQ(node.proposer, "llm");
}

TEST(Advice, EmbeddedSubAgentsAskNothing) {
  const auto store = make_memory_store();
  ModelWorld it(*store, advised_answer_of);
  SearchOptions options = advised_options(3);
  options.models.sub_agents = SubAgents::embedded;
  const auto result = search(it.dependencies(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  for (const Conversation& talk : talks_of(it.world.graph, result->run)) {
    EXPECT_EQ(styles_of(talk), std::vector<std::string>{"llm"});
    EXPECT_FALSE(says(talk[0].prompt, "advised"));
  }
  EXPECT_EQ(result->models.sub_agents, ModelCost{});
}

TEST(Advice, AMalformedAnswerIsFollowedUpOnceAndThenTheEmbeddedOneStandsIn) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    return agent_asked(call) ? say("I would rather talk.") : answer_of(call);
  });
  const auto result = search(it.dependencies(), advised_options(2));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 2);
  const std::vector<std::string> wanted = {"llm/context_memory", "llm/context_memory",
                                           "llm/deep_search", "llm/deep_search", "llm"};
  for (const Conversation& talk : talks_of(it.world.graph, result->run)) {
    ASSERT_EQ(styles_of(talk), wanted);
    const std::string& fault = talk[0].answers.at(0).fault;
    EXPECT_TRUE(fault.starts_with("The answer holds no JSON; write the diagnosis")) << fault;
    EXPECT_TRUE(says(talk[1].prompt, fault)) << "the follow-up says what was wrong";
    EXPECT_EQ(talk[1].answers.at(0).fault, fault);
    EXPECT_FALSE(says(talk[4].prompt, "advised"));
  }
  EXPECT_EQ(it.world.events.count("model.stand_in"), 4);
  const auto report = play_again(*export_run(it.world.graph, result->run));
  EXPECT_TRUE(report) << report.error().to_string();
}

TEST(Advice, ADocumentThatWasNeverShownIsAFault) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    const auto agent = agent_asked(call);
    if (agent != Agent::deep_search) return advised_answer_of(call);
    return choose(call.request.messages.size() == 1 ? "hidden/optimum.md" : "guidance/genes.md");
  });
  const auto result = search(it.dependencies(), advised_options(1));
  ASSERT_TRUE(result) << result.error().to_string();
  const Conversation talk = talks_of(it.world.graph, result->run).at(0);
  ASSERT_EQ(styles_of(talk), kWhole);
  EXPECT_NE(talk[1].answers.at(0).fault.find("no document that you were shown"),
            std::string::npos);
  EXPECT_TRUE(says(talk[3].prompt, "guidance/genes.md"));
}

TEST(Advice, SearchesEndAfterTwoRounds) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    return agent_asked(call) == Agent::deep_search ? search_for("planted")
                                                   : advised_answer_of(call);
  });
  const auto result = search(it.dependencies(), advised_options(1));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 1);
  const Conversation talk = talks_of(it.world.graph, result->run).at(0);
  // The question, two rounds, the fault that says there is no third, and then the proposal.
  ASSERT_EQ(talk.size(), 6u);
  EXPECT_EQ(talk[3].answers.at(0).fault, "All 2 rounds of searches were used; choose now.");
  EXPECT_EQ(talk[5].prompt.style, "llm");
  EXPECT_EQ(it.world.events.count("model.stand_in"), 1);
}

// The failure of one call is not the end of the conversation.
TEST(Advice, AFailedCallOfASubAgentLeavesTheRestOfTheConversation) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) -> llm::Outcome {
    if (agent_asked(call) == Agent::context_memory) {
      return llm::Failure{llm::FailureKind::timed_out, "it thinks for ever"};
    }
    return advised_answer_of(call);
  });
  const auto result = search(it.dependencies(), advised_options(2));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 2);
  for (const Conversation& talk : talks_of(it.world.graph, result->run)) {
    EXPECT_EQ(styles_of(talk), kWhole);
    EXPECT_TRUE(says(talk.back().prompt, "hidden/optimum.md"));
    EXPECT_FALSE(says(talk.back().prompt, "advised"));
  }
}

TEST(Advice, AModelThatDiesBetweenStagesLeavesTheRunToTheOthers) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) -> llm::Outcome {
    if (call.number > 1) return llm::Failure{llm::FailureKind::refused, "no such model any more"};
    return advised_answer_of(call);
  });
  const auto result = search(it.dependencies(), advised_options(8, {"genes", "llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 8);
  EXPECT_EQ(result->models.calls, 2);
  EXPECT_EQ(it.world.events.count("model.ended"), 1);
  EXPECT_EQ(it.world.events.count("model.stand_in"), 0) << "nothing goes on that could be told";
  const auto report = play_again(*export_run(it.world.graph, result->run));
  EXPECT_TRUE(report) << report.error().to_string();
}

TEST(Advice, TheBudgetCountsSubAgents) {
  const auto store = make_memory_store();
  os::SystemClock clock;
  llm::LlmBudget budget({.calls = 6, .tokens = {}, .usd = {}, .time = {}}, {});
  std::vector<AskedModel> models;
  models.push_back({llm::with_budget(std::make_unique<ScriptedProvider>("fake:m",
                                                                        advised_answer_of),
                                     budget, std::nullopt),
                    std::nullopt});
  ModelWorld it(*store, std::move(models));
  const auto result = search(it.dependencies(), advised_options(8, {"genes", "llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 8);
  EXPECT_EQ(result->models.calls, 6);
  EXPECT_GE(result->models.sub_agents.calls, 4);
}

// Two may be in flight, but not two that ask context memory the same.
TEST(Advice, TheSameAdviceIsNotPaidForTwiceAtATime) {
  const auto store = make_memory_store();
  ModelWorld it(*store, advised_answer_of);
  SearchOptions options = advised_options(6);
  options.models.calls = 4;
  const auto result = search(it.dependencies(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  const std::vector<ExchangeRow> exchanges = *it.world.graph.exchanges(result->run);
  std::map<PromptId, Digest> began;     // the first prompt of each conversation, by every prompt
  std::map<Digest, PromptId> under_way;  // the prompt that a conversation waits for
  std::map<PromptId, PromptRow> prompts;
  for (const ExchangeRow& one : exchanges) prompts[one.prompt.id] = one.prompt;
  const std::vector<JournalRow> journal_rows = *it.world.graph.journal(result->run);
  for (const JournalRow& row : journal_rows) {
    if (row.kind == JournalKind::prompt) {
      const PromptRow& prompt = prompts.at({row.row});
      const Digest first = prompt.follows ? began.at(prompt.follows) : prompt.digest;
      EXPECT_FALSE(!prompt.follows && under_way.contains(first)) << prompt.id.value;
      began[prompt.id] = first;
      under_way[first] = prompt.id;
    }
    if (row.kind == JournalKind::answer) {
      for (const ExchangeRow& one : exchanges) {
        for (const AnswerRow& answer : one.answers) {
          if (answer.id.value != row.row || answer.early) continue;
          // The next stage is asked before anything new, so only the last answer ends it.
          if (one.prompt.style == "llm") under_way.erase(began.at(one.prompt.id));
        }
      }
    }
  }
}

TEST(Advice, ACutAtAnyInsertLosesNothingAndTheWholePlaysAgain) {
  const auto script = [](const Call& call) {
    const size_t messages = call.request.messages.size();
    const auto agent = agent_asked(call);
    if (agent == Agent::context_memory && messages == 1) return say("Let me think.");
    if (!agent && messages == 1) return ask_search();
    return advised_answer_of(call);
  };
  const std::vector<std::string> wanted = {"llm/context_memory", "llm/context_memory",
                                           "llm/deep_search", "llm/deep_search", "llm", "llm"};
  const SearchOptions options = advised_options(1);
  bool cut = true;
  int64_t cuts = 0;
  for (int64_t moment = 1; cut; ++moment) {
    SCOPED_TRACE(fmt::format("cut off at insert {}", moment));
    const auto store = make_memory_store();
    cut = false;
    {
      WatchedStore watched(*store, [&](int64_t insert) -> Result<void> {
        if (insert != moment) return {};
        cut = true;
        return Error{Errc::unavailable, "the disk is full"};
      });
      ModelWorld it(watched, script);
      const bool whole = search(it.dependencies(), options).has_value();
      EXPECT_EQ(whole, !cut);
    }
    cuts += cut ? 1 : 0;
    ModelWorld it(*store, script);
    const RunId run = **it.world.graph.latest_run();
    if (cut) {
      const auto result = resume(it.dependencies(), run, options);
      ASSERT_TRUE(result) << result.error().to_string();
      EXPECT_EQ(result->evaluated, 1);
      EXPECT_EQ(result->models.calls, 6);
      EXPECT_EQ(result->models.sub_agents.calls, 4);
    }
    const std::vector<Conversation> talks = talks_of(it.world.graph, run);
    ASSERT_EQ(talks.size(), 1u);
    ASSERT_EQ(styles_of(talks[0]), wanted);
    for (const ExchangeRow& one : talks[0]) EXPECT_EQ(one.answers.size(), 1u);
    EXPECT_TRUE(says(talks[0][5].prompt, "advised: Change a pair of genes."));
    EXPECT_TRUE(says(talks[0][5].prompt, "hidden/optimum.md"));
    const auto report = play_again(*export_run(it.world.graph, run));
    ASSERT_TRUE(report) << report.error().to_string();
  }
  EXPECT_GE(cuts, 14) << "six prompts, six answers, a node and its evaluation";
}

// Good answers, talk, failures and tools, by the prompt alone, with two calls in flight.
TEST(Advice, AMoodyModelIsCutAtAnyInsertAndTheWholePlaysAgain) {
  const auto script = [](const Call& call) -> llm::Outcome {
    Rng rng = Rng(5).split(llm::prompt_digest(call.request).hex());
    const double mood = rng.uniform();
    if (mood < 0.2) return say("Let me think.");
    if (mood < 0.3) return llm::Failure{llm::FailureKind::overloaded, "busy"};
    if (mood < 0.4 && !agent_asked(call)) return ask_search();
    return advised_answer_of(call);
  };
  constexpr Faults kFaults{.build_failures = 0.1, .rejections = 0.2};
  SearchOptions options = advised_options(14, {"genes", "llm"});
  options.models.calls = 2;
  int64_t stood_in = 0, whole = 0;
  for (int64_t moment = 2; moment <= 80; moment += 3) {
    SCOPED_TRACE(fmt::format("cut off at insert {}", moment));
    const auto store = make_memory_store();
    {
      WatchedStore watched(*store, [&](int64_t insert) -> Result<void> {
        if (insert != moment) return {};
        return Error{Errc::unavailable, "the disk is full"};
      });
      ModelWorld it(watched, script, kFaults);
      (void)search(it.dependencies(), options).has_value();
    }
    ModelWorld it(*store, script, kFaults);
    const RunId run = **it.world.graph.latest_run();
    const auto result = resume(it.dependencies(), run, options);
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_EQ(result->evaluated, 14);
    stood_in += it.world.events.count("model.stand_in");
    std::set<PromptId> followed;
    for (const Conversation& talk : talks_of(it.world.graph, run)) {
      if (talk.back().prompt.style == "llm") ++whole;
      for (const ExchangeRow& one : talk) {
        EXPECT_LE(std::ranges::count(one.answers, false, &AnswerRow::early), 1);
        if (!one.prompt.follows) continue;
        EXPECT_TRUE(followed.insert(one.prompt.follows).second) << one.prompt.id.value;
      }
    }
    const auto report = play_again(*export_run(it.world.graph, run));
    ASSERT_TRUE(report) << report.error().to_string();
  }
  EXPECT_GE(stood_in, 1);
  EXPECT_GE(whole, 27);
}

// Every other conversation brings no kernel: three asks a step (two questions that begin one, and a
// fault), and four are allowed. With the other stages it would be seven.
TEST(Advice, SubAgentsDoNotUseUpTheAsksOfARun) {
  const auto store = make_memory_store();
  int64_t begun = 0;  // one call at a time
  ModelWorld it(*store, [&](const Call& call) {
    if (agent_asked(call) == Agent::context_memory) ++begun;
    return agent_asked(call) || begun % 2 == 0 ? advised_answer_of(call) : say("no");
  });
  const auto result = search(it.dependencies(), advised_options(4));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->evaluated, 4);
  EXPECT_EQ(talks_of(it.world.graph, result->run).size(), 8u);
  EXPECT_EQ(result->models.calls, 4 * (5 + 4));
}

TEST(Advice, ConversationsWithoutAKernelEndTheRun) {
  const auto store = make_memory_store();
  ModelWorld it(*store, [](const Call& call) {
    return agent_asked(call) ? advised_answer_of(call) : say("no");
  });
  const auto result = search(it.dependencies(), advised_options(5, {"llm"}));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->reason, EndReason::exhausted);
  // The same question is asked three times; each brings advice, a proposal and its follow-up.
  EXPECT_EQ(talks_of(it.world.graph, result->run).size(), 3u);
  EXPECT_EQ(result->models.calls, 15);
}

class TamperedAdvice : public testing::Test {
 protected:
  void SetUp() override {
    ModelWorld it(*store_, advised_answer_of);
    const auto result = search(it.dependencies(), advised_options(2));
    recorded_ = *export_run(it.world.graph, result->run);
  }
  void answer(size_t prompt, const llm::Outcome& outcome) {
    recorded_["prompts"][prompt]["answers"][0]["outcome"]["answer"]["text"] = outcome->text;
  }
  std::string refusal() {
    const auto report = play_again(recorded_);
    return report ? "nothing differs" : report.error().message;
  }
  std::unique_ptr<Store> store_ = make_memory_store();
  Json recorded_;
};

TEST_F(TamperedAdvice, ADiagnosisOfOtherWordsIsAnotherPrompt) {
  EXPECT_EQ(refusal(), "nothing differs");
  answer(0, diagnose_as("Do something else."));
  EXPECT_NE(refusal().find("is prompt 2 (llm/deep_search, fake:m)"), std::string::npos)
      << refusal();
  EXPECT_NE(refusal().find("message 1 differs"), std::string::npos) << refusal();
}

TEST_F(TamperedAdvice, AnotherChoiceIsAnotherPrompt) {
  answer(2, choose("guidance/genes.md"));
  EXPECT_NE(refusal().find("is prompt 4 (llm, fake:m)"), std::string::npos) << refusal();
}

TEST_F(TamperedAdvice, AnotherSearchIsAnotherPrompt) {
  answer(1, search_for("six"));
  EXPECT_NE(refusal().find("is prompt 3 (llm/deep_search, fake:m)"), std::string::npos)
      << refusal();
}

TEST_F(TamperedAdvice, AnAnswerThatCannotBeReadAnyMore) {
  answer(0, say("no"));
  EXPECT_NE(refusal().find("out of the answer to prompt 1, not advice"), std::string::npos)
      << refusal();
}

TEST_F(TamperedAdvice, SubAgentsThatTheConfigurationDoesNotName) {
  recorded_["config"]["models"].erase("sub_agents");
  EXPECT_NE(refusal().find("the replay asks fake:m (llm)"), std::string::npos) << refusal();
}

TEST(Advice, TheOptionIsKeptWithTheRunAndAbsentByDefault) {
  SearchOptions options = advised_options(3);
  const Json json = encode(options);
  EXPECT_EQ(decode_search_options(json)->models.sub_agents, SubAgents::model);
  options.models.sub_agents = SubAgents::embedded;
  EXPECT_FALSE(encode(options)["models"].contains("sub_agents")) << "older runs read the same";
  Json other = json;
  other["models"]["sub_agents"] = "nobody";
  EXPECT_FALSE(decode_search_options(other));
}

}  // namespace
}  // namespace ke::sim
