// SPDX-License-Identifier: Apache-2.0
#include "llm/mailbox/mailbox.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "llm/testing.hpp"

namespace ke::llm {
namespace {

struct Mailbox : ::testing::Test, Bench {
  std::filesystem::path box = folder.path() / "box";
  os::SystemClock real;

  std::unique_ptr<Provider> open() {
    return find_provider("mailbox")
        ->make(box.string(), {real, http, environment, limits, events, Rng(1)})
        .value();
  }
  // Asks on a thread of its own and answers once the prompt is there.
  Outcome exchange(Provider& provider, const std::string& text, const std::string& answer) {
    Outcome outcome = Failure{};
    std::jthread asker([&] { outcome = provider.complete(question(text), {}, {}); });
    while (true) {
      const std::vector<MailboxEntry> entries = list_mailbox(box).value();
      for (const MailboxEntry& entry : entries) {
        if (entry.answered) continue;
        EXPECT_EQ(read_prompt(box, entry.number).value(), text + "\n");
        EXPECT_TRUE(answer_prompt(box, entry.number, answer));
        asker.join();
        return outcome;
      }
      std::this_thread::yield();
    }
  }
};

TEST_F(Mailbox, ExchangesFiles) {
  const auto provider = open();
  const Outcome first = exchange(*provider, "What is it?", "It is \xC3\xA9.\n");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "It is \xC3\xA9.\n");
  EXPECT_EQ(first->provider, "mailbox:" + box.string());
  EXPECT_TRUE(first->usage.estimated);
  EXPECT_EQ(exchange(*provider, "And now?", "yes")->text, "yes");
  const std::vector<MailboxEntry> entries = list_mailbox(box).value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].prompt, box / "0002.prompt.md");
  EXPECT_EQ(entries[1].answer, box / "0002.answer.md");
  EXPECT_EQ(entries[1].digest, prompt_digest(question("And now?")).hex());
  EXPECT_TRUE(entries[1].answered);
}

TEST_F(Mailbox, ThePurposeStandsInTheHeadAndNotInThePrompt) {
  std::stop_source stopped;
  stopped.request_stop();
  CompletionRequest request = question("which");
  const auto provider = open();
  EXPECT_TRUE(provider->complete(request, {}, stopped.get_token()));
  request = question("why");
  request.purpose = "llm/context_memory";
  EXPECT_TRUE(provider->complete(request, {}, stopped.get_token()));
  const std::vector<MailboxEntry> entries = list_mailbox(box).value();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].asks, "");
  EXPECT_EQ(entries[1].asks, "llm/context_memory");
  EXPECT_EQ(entries[1].digest, prompt_digest(question("why")).hex()) << "no part of the question";
  EXPECT_EQ(read_prompt(box, 2).value(), "why\n");
}

TEST_F(Mailbox, APromptWhoseAskerWasKilledKeepsItsNumberAndItsAnswer) {
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(open()->complete(question("same"), {}, stopped.get_token())->finish,
            FinishReason::stopped_by_us);
  ASSERT_TRUE(answer_prompt(box, 1, "late"));
  const auto provider = open();
  EXPECT_EQ(provider->complete(question("same"), {}, {})->text, "late");
  EXPECT_EQ(list_mailbox(box)->size(), 1U);
  EXPECT_EQ(exchange(*provider, "same", "anew")->text, "anew");  // asked again: another number
  EXPECT_EQ(list_mailbox(box)->size(), 2U);
}

TEST_F(Mailbox, AnAnswerWithoutAPromptIsForNobody) {
  ASSERT_TRUE(os::make_directories(box));
  ASSERT_TRUE(os::write_file_atomically(box / "0001.answer.md", "stale"));
  const auto provider = open();
  EXPECT_EQ(exchange(*provider, "?", "fresh")->text, "fresh");
  EXPECT_TRUE(os::exists(box / "0002.prompt.md"));
}

TEST_F(Mailbox, WaitsByTheClockAndGivesUp) {
  limits.mailbox_wait_max = Milliseconds(3'600'000);
  const Outcome outcome = bare("mailbox:" + box.string())->complete(question("?"), {}, {});
  EXPECT_EQ(outcome.error().kind, FailureKind::timed_out);
  EXPECT_EQ(outcome.error().message, "nobody answered " + (box / "0001.prompt.md").string());
  EXPECT_GE(clock.now(), limits.mailbox_wait_max);
}

TEST_F(Mailbox, RefusesAnswersThatAreNone) {
  EXPECT_EQ(list_mailbox(box).error().code, Errc::not_found);
  ASSERT_TRUE(os::make_directories(box));
  EXPECT_EQ(answer_prompt(box, 1, "x").error().code, Errc::not_found);
  ASSERT_TRUE(os::write_file_atomically(box / "0001.prompt.md", "no head\n"));
  EXPECT_EQ(read_prompt(box, 1).value(), "no head\n");
  EXPECT_EQ(answer_prompt(box, 1, " \n").error().code, Errc::invalid);
  EXPECT_TRUE(answer_prompt(box, 1, "x"));
  EXPECT_EQ(answer_prompt(box, 1, "y").error().code, Errc::conflict);
  ASSERT_TRUE(os::write_file_atomically(box / "notes.md", "not a prompt"));
  EXPECT_EQ(list_mailbox(box)->size(), 1U);
}

TEST_F(Mailbox, AnAnswerThatIsNotUtf8IsMalformed) {
  const auto provider = open();
  EXPECT_EQ(exchange(*provider, "?", "\xFF\xFE").error().kind, FailureKind::malformed);
}

}  // namespace
}  // namespace ke::llm
