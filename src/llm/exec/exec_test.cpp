// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <thread>

#include "llm/testing.hpp"
#include "llm/utf8.hpp"

namespace ke::llm {
namespace {

struct Exec : ::testing::Test, Bench {
  Exec()
      : Bench({{"PATH", "/usr/bin:/bin"},
               {"HOME", "/nowhere"},
               {"OPENAI_API_KEY", "sk-test-0123456789"}}) {}

  Outcome run(const std::string& command, const OnDelta& on_delta = {}) {
    return bare("exec:" + command)->complete(question("the question", "stable"), on_delta, {});
  }
};

TEST_F(Exec, FeedsThePromptAndReadsTheAnswer) {
  const Outcome outcome = run("cat; echo answered");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "stable\n\nthe question\nanswered\n");
  EXPECT_EQ(outcome->finish, FinishReason::stop);
  EXPECT_EQ(outcome->provider, "exec:cat; echo answered");
  EXPECT_TRUE(outcome->usage.estimated);
  EXPECT_GT(outcome->usage.input_tokens, 0);
}

TEST_F(Exec, RunsInAnEmptyFolderWithoutOurEnvironment) {
  const Outcome outcome = run("ls -A | wc -l; env | sort");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text.substr(0, 2), "0\n");
  EXPECT_NE(outcome->text.find("HOME=/nowhere"), std::string::npos);
  EXPECT_EQ(outcome->text.find("sk-test"), std::string::npos);
  EXPECT_EQ(outcome->text.find("OPENAI"), std::string::npos);
}

TEST_F(Exec, FailuresAreTyped) {
  Failure failure = run("echo first >&2; echo no login sk-test-0123456789 >&2; exit 3").error();
  EXPECT_EQ(failure.kind, FailureKind::unreachable);
  EXPECT_NE(failure.message.find("ended with exit code 3: no login [key]"), std::string::npos);
  EXPECT_EQ(run("no-such-program-at-all").error().kind, FailureKind::refused);
  EXPECT_EQ(run("printf ' \\n'").error().kind, FailureKind::malformed);
  EXPECT_EQ(run("printf '\\377'").error().kind, FailureKind::malformed);
  EXPECT_EQ(run("echo sk-test-0123456789").error().kind, FailureKind::malformed);
  limits.llm_answer_bytes_max = 1000;
  EXPECT_EQ(run("yes | head -c 100000").error().kind, FailureKind::malformed);
  limits.llm_total_max = Milliseconds(100);
  EXPECT_EQ(run("sleep 1000").error().kind, FailureKind::timed_out);
}

TEST_F(Exec, StreamsAndStopsInTheMiddle) {
  std::string heard;
  const Outcome outcome = run("echo one; exec sleep 1000", [&](const Delta& delta) {
    heard += delta.text;
    return heard.find("one\n") == std::string::npos;
  });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "one\n");
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
}

TEST_F(Exec, AStopTokenEndsTheCommand) {
  std::stop_source source;
  const auto provider = bare("exec:echo begun; exec sleep 1000");
  const Outcome outcome = provider->complete(question("?"), [&](const Delta&) {
    source.request_stop();
    return true;
  }, source.get_token());
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
}

TEST(Utf8, KnowsWhatItIs) {
  for (const char* good : {"", "plain", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE2\x82", "\xED\xA0\x80", "\xE0\x9F\xBF",
                          "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xFF", "a\xC3(",
                          "\xF5\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace ke::llm
