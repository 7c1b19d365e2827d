// SPDX-License-Identifier: Apache-2.0
#include "graph/recording.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "graph/graph.hpp"

namespace ke {
namespace {

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override {
    const ProblemId problem = *graph_.add_problem({.name = "p", .digest = digest_of("p")});
    run_ = *graph_.add_run({.scope = {problem, "none", "g++"},
                            .config = "{\"steps\":3}",
                            .description = "{\"machine\":1}",
                            .seed = 9});
    const PromptId prompt = *graph_.add_prompt({.run = run_,
                                                .style = "llm",
                                                .model = "fake:m",
                                                .digest = digest_of("q"),
                                                .stable_digest = digest_of("shared"),
                                                .stable = "shared",
                                                .request = "{\"messages\":[]}",
                                                .ground = "{\"documents\":[]}"});
    EXPECT_TRUE(graph_.add_answer({.prompt = prompt, .outcome = "{\"text\":\"a\"}"}));
    const NodeId node = *graph_.add_node(
        {.run = run_, .step = 1, .proposer = "llm", .source = "int x;", .prompt = prompt});
    EXPECT_TRUE(graph_.add_evaluation(node, Evaluation{.detail = "it fell"}, "screen"));
  }
  Json exported() { return *export_run(graph_, run_); }

  std::unique_ptr<Store> store_ = make_memory_store();
  ExperienceGraph graph_{*store_};
  RunId run_;
};

TEST_F(RecordingTest, AnExportIsReadBack) {
  const auto recording = decode_recording(exported());
  ASSERT_TRUE(recording) << recording.error().to_string();
  EXPECT_EQ(recording->run.seed, 9u);
  EXPECT_EQ(recording->run.config, "{\"steps\":3}");
  EXPECT_EQ(recording->run.description, "{\"machine\":1}");
  ASSERT_EQ(recording->journal.size(), 4u);
  EXPECT_EQ(recording->journal[0].kind, JournalKind::prompt);
  EXPECT_EQ(recording->journal[3].kind, JournalKind::evaluation);
  const PromptRow& prompt = recording->prompts.begin()->second;
  EXPECT_EQ(prompt.stable, "shared");
  EXPECT_EQ(prompt.digest, digest_of("q"));
  EXPECT_EQ(recording->answers.begin()->second.outcome, "{\"text\":\"a\"}");
  EXPECT_EQ(recording->nodes.begin()->second.prompt, prompt.id);
  EXPECT_EQ(recording->evaluations.begin()->second.evaluation.detail, "it fell");
}

TEST_F(RecordingTest, RefusesWhatItCannotReplay) {
  struct Case {
    const char* pointer;
    Json value;
    const char* sentence;
  } cases[] = {
      {"/schema", 1, "the recording has schema 1, known is 2"},
      {"/journal", Json::array(), "the run was recorded by a version that kept no journal"},
      {"/journal/0/1", 77, "the journal names prompt 77, which is not there"},
      {"/journal/0", 3, "the journal holds no list of [kind, id] pairs"},
      {"/prompts/0/digest", "xyz", "'digest' is not a digest"},
      {"/nodes/0/kind", "guess", "'guess' is no value of 'kind'"},
      {"/texts", Json::object(), nullptr},
      {"/odd", 1, "the recording has an unknown field 'odd'"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.pointer);
    Json json = exported();
    json[Json::json_pointer(one.pointer)] = one.value;
    const auto recording = decode_recording(json);
    ASSERT_FALSE(recording);
    if (one.sentence) {
      EXPECT_EQ(recording.error().message, one.sentence);
    }
  }
}

}  // namespace
}  // namespace ke
