// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "llm/exchange.hpp"
#include "llm/fake_provider.hpp"
#include "llm/testing.hpp"

namespace ke::llm {
namespace {

struct Replay : ::testing::Test, Bench {
  std::string file = (folder.path() / "runs" / "recording.jsonl").string();

  // Records the answers to the questions "1", "2"… in order.
  void record(std::deque<Outcome> answers) {
    const size_t count = answers.size();
    const auto provider =
        with_recording(std::make_unique<FakeProvider>(std::move(answers)), file).value();
    for (size_t i = 1; i <= count; ++i) {
      (void)provider->complete(question(std::to_string(i), "stable"), {}, {});
    }
  }
  Outcome ask(Provider& provider, const std::string& text, const std::string& stable = "stable") {
    return provider.complete(question(text, stable), {}, {});
  }
  Error open_error() {
    return find_provider("replay")->make(file, context()).error();
  }
};

TEST_F(Replay, GivesBackAnswersAndFailuresAsTheyWere) {
  Completion completion;
  completion.text = "line one\nline \"two\" \xC3\xA9";
  completion.finish = FinishReason::length;
  completion.usage = {100, 40, 30, 7, true};
  completion.elapsed = Nanoseconds(123'456'789);
  Failure failure{FailureKind::context_overflow, "too long", {}, 4096};
  failure.usage.input_tokens = 9;
  record({completion, failure});
  const auto provider = bare("replay:" + file);
  const Outcome second = ask(*provider, "2");  // in any order
  EXPECT_EQ(second.error().kind, FailureKind::context_overflow);
  EXPECT_EQ(second.error().message, "too long");
  EXPECT_EQ(second.error().context_tokens_max, 4096);
  EXPECT_EQ(second.error().usage, failure.usage);
  const Outcome first = ask(*provider, "1");
  EXPECT_EQ(first->text, completion.text);
  EXPECT_EQ(first->finish, FinishReason::length);
  EXPECT_EQ(first->usage, completion.usage);
  EXPECT_EQ(first->elapsed, completion.elapsed);
  EXPECT_EQ(first->provider, "fake:script");
}

TEST_F(Replay, TheSamePromptGetsItsAnswersInOrder) {
  const auto recorder =
      with_recording(std::make_unique<FakeProvider>(
                         std::deque<Outcome>{fake_answer("first"), fake_answer("second")}),
                     file)
          .value();
  (void)ask(*recorder, "same");
  (void)ask(*recorder, "same");
  const auto provider = bare("replay:" + file);
  EXPECT_EQ(ask(*provider, "same")->text, "first");
  EXPECT_EQ(ask(*provider, "same")->text, "second");
  const Outcome third = ask(*provider, "same");
  EXPECT_EQ(third.error().kind, FailureKind::diverged);
  EXPECT_NE(third.error().message.find("was asked more often than it was recorded"),
            std::string::npos);
}

TEST_F(Replay, SaysWhichPromptDiffersAndWhere) {
  record({fake_answer("a"), fake_answer("b")});
  const auto provider = bare("replay:" + file);
  EXPECT_TRUE(ask(*provider, "1"));
  const CompletionRequest asked = question("2\nand more", "stable");
  const Outcome outcome = provider->complete(asked, {}, {});
  EXPECT_EQ(outcome.error().kind, FailureKind::diverged);
  EXPECT_EQ(outcome.error().message,
            file + ": the prompt " + prompt_digest(asked).short_hex() +
                " was not recorded; the next recorded one is number 2, " +
                prompt_digest(question("2", "stable")).short_hex() +
                ": message 1 differs from line 1 on");
  EXPECT_NE(ask(*provider, "2", "other").error().message.find("the stable part differs"),
            std::string::npos);
  EXPECT_TRUE(ask(*provider, "2"));
  EXPECT_NE(ask(*provider, "3").error().message.find("all 2 exchanges are used"),
            std::string::npos);
}

TEST_F(Replay, IsReadAlongLineByLineAndCanBeStopped) {
  record({fake_answer("one\ntwo\nthree")});
  std::string heard;
  const Outcome outcome =
      bare("replay:" + file)->complete(question("1", "stable"), [&](const Delta& delta) {
        heard += delta.text;
        return heard != "one\ntwo\n";
      }, {});
  EXPECT_EQ(outcome->finish, FinishReason::stopped_by_us);
  EXPECT_EQ(outcome->text, "one\ntwo\n");
}

TEST_F(Replay, ARecordingThatWasKilledGoesOn) {
  record({fake_answer("a")});
  std::string text = os::read_file(file, 1_MiB).value();
  ASSERT_TRUE(os::write_file_atomically(file, text + text.substr(0, 30)));
  EXPECT_EQ(ask(*bare("replay:" + file), "1")->text, "a");
  record({fake_answer("b")});
  const auto provider = bare("replay:" + file);
  EXPECT_EQ(ask(*provider, "1")->text, "a");
  EXPECT_EQ(ask(*provider, "1")->text, "b");
}

TEST_F(Replay, RefusesADamagedRecordingByItsLine) {
  EXPECT_EQ(open_error().code, Errc::not_found);
  ASSERT_TRUE(os::make_directories(folder.path() / "runs"));
  ASSERT_TRUE(os::write_file_atomically(file, ""));
  EXPECT_EQ(open_error().message, file + " holds no recorded exchange");
  record({fake_answer("a")});
  const std::string good = os::read_file(file, 1_MiB).value();
  for (const auto& [from, to, said] :
       {std::tuple{"\"schema\":1", "\"schema\":2", "the exchange has schema 2, known is 1"},
        std::tuple{"\"finish\":\"stop\"", "\"finish\":\"end\"", "'end' is no value of 'finish'"},
        std::tuple{"\"stable\":\"", "\"stable\":\"x", "'stable' is not a digest"},
        std::tuple{"\"schema\":1", "\"schema\":1,\"x\":1", "the exchange has an unknown field 'x'"},
        std::tuple{"{", "", "not valid JSON near byte 9"}}) {
    std::string bad = good;
    bad.replace(bad.find(from), std::string(from).size(), to);
    ASSERT_TRUE(os::write_file_atomically(file, good + bad));
    EXPECT_EQ(open_error().to_string(), file + " line 2: " + said);
  }
}

TEST_F(Replay, AnExchangeThatCannotBeWrittenFails) {
  const auto provider =
      with_recording(std::make_unique<FakeProvider>(std::deque<Outcome>{fake_answer("a")}),
                     "/dev/full")
          .value();
  const Outcome outcome = ask(*provider, "1");
  EXPECT_EQ(outcome.error().message, "cannot write /dev/full: the disk is full");
}

}  // namespace
}  // namespace ke::llm
