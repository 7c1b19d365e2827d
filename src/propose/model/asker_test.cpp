// SPDX-License-Identifier: Apache-2.0
#include "propose/model/asker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>

#include "base/json.hpp"

namespace ke {
namespace {

// Answers as it is told to, from the asker's threads.
class ToldProvider final : public llm::Provider {
 public:
  using Answer =
      std::function<llm::Outcome(const llm::OnDelta& on_delta, const std::stop_token& stop)>;
  explicit ToldProvider(Answer answer) : answer_(std::move(answer)) {}
  std::string id() const override { return "told:m"; }
  llm::Outcome complete(const llm::CompletionRequest&, const llm::OnDelta& on_delta,
                        std::stop_token stop) override {
    return answer_(on_delta, stop);
  }

 private:
  Answer answer_;
};

llm::Outcome whole(std::string text) {
  llm::Completion completion;
  completion.text = std::move(text);
  completion.usage.output_tokens = 1'000'000;
  return completion;
}

constexpr const char* kBlock = "Here:\n```cpp\nint ke_launch;\n```\n";

class AskerTest : public testing::Test {
 protected:
  std::unique_ptr<Asker> asker(ToldProvider::Answer answer, int calls = 1) {
    std::vector<AskedModel> models;
    models.push_back({std::make_unique<ToldProvider>(std::move(answer)),
                      llm::Price{.output = 2.0}});
    return std::make_unique<Asker>(std::move(models), calls, clock_, events_);
  }
  static void ask(Asker& asker, int64_t prompt) {
    asker.ask({prompt}, 0, {.messages = {{llm::Role::user, "q"}}}, {});
  }
  static ModelEvent next(Asker& asker) {
    for (;;) {
      if (auto event = asker.poll()) return std::move(*event);
      EXPECT_TRUE(asker.wait(Milliseconds{1'000}));
    }
  }
  os::SystemClock clock_;
  EventQueue events_;
};

TEST_F(AskerTest, HandsOutAnAnswerWithItsPrice) {
  const auto it = asker([](const llm::OnDelta& on_delta, const std::stop_token&) {
    on_delta({kBlock});
    return whole(kBlock);
  });
  ask(*it, 7);
  const ModelEvent event = next(*it);
  EXPECT_EQ(event.prompt, PromptId{7});
  EXPECT_FALSE(event.early) << "an answer in one piece is told once";
  EXPECT_EQ(event.outcome->text, kBlock);
  EXPECT_DOUBLE_EQ(event.usd, 2.0);
  EXPECT_FALSE(it->poll());
}

TEST_F(AskerTest, ABlockIsHandedOutWhileTheModelWrites) {
  std::promise<void> judged;
  std::shared_future<void> may_end = judged.get_future().share();
  const auto it = asker([may_end](const llm::OnDelta& on_delta, const std::stop_token&) {
    on_delta({kBlock});
    may_end.wait();
    on_delta({"It is fast.\n"});
    return whole(std::string(kBlock) + "It is fast.\n");
  });
  ask(*it, 1);
  const ModelEvent early = next(*it);
  EXPECT_TRUE(early.early);
  EXPECT_EQ(early.outcome->text, kBlock);
  judged.set_value();
  const ModelEvent last = next(*it);
  EXPECT_FALSE(last.early);
  EXPECT_TRUE(last.outcome->text.ends_with("It is fast.\n"));
}

TEST_F(AskerTest, TheEndStopsACallAndTellsNothingOfIt) {
  std::promise<void> started;
  const auto it = asker([&](const llm::OnDelta& on_delta, const std::stop_token& stop) {
    started.set_value();
    while (!stop.stop_requested()) std::this_thread::yield();
    EXPECT_FALSE(on_delta({"cut"}));
    llm::Completion cut;
    cut.text = "cut";
    cut.finish = llm::FinishReason::stopped_by_us;
    return llm::Outcome(cut);
  });
  ask(*it, 1);
  ask(*it, 2);  // waits for the first, and is never begun
  started.get_future().wait();
  it->end();
  EXPECT_FALSE(it->poll());
}

TEST_F(AskerTest, CallsAreInFlightTogetherUpToTheLimit) {
  std::atomic<int> together{0}, most{0};
  const auto it = asker(
      [&](const llm::OnDelta&, const std::stop_token&) {
        most = std::max(most.load(), ++together);
        while (most < 2) std::this_thread::yield();
        --together;
        return whole("x");
      },
      2);
  for (int64_t prompt = 1; prompt <= 6; ++prompt) ask(*it, prompt);
  for (int i = 0; i < 6; ++i) next(*it);
  EXPECT_EQ(most.load(), 2);
}

TEST_F(AskerTest, AFailureIsTold) {
  const auto it = asker([](const llm::OnDelta&, const std::stop_token&) {
    return llm::Outcome(llm::Failure{llm::FailureKind::unreachable, "no connection"});
  });
  ask(*it, 3);
  const ModelEvent event = next(*it);
  ASSERT_FALSE(event.outcome);
  EXPECT_EQ(event.outcome.error().message, "no connection");
}

}  // namespace
}  // namespace ke
