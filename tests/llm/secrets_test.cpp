// SPDX-License-Identifier: Apache-2.0
//
// A key goes into the request header and nowhere else: everything that is written while all
// providers work and fail is searched for it.
#include <gtest/gtest.h>

#include <thread>

#include "llm/exchange.hpp"
#include "llm/mailbox/mailbox.hpp"
#include "llm/testing.hpp"
#include "test_server.hpp"

namespace ke::test {
namespace {

using namespace ke::llm;  // tidy: allow(using-namespace) because this tests that folder

const std::string kKey = "sk-secret-7f3a9c51d2e8";

struct SecretsTest : ::testing::Test {
  // What the program writes lies in `out`; the server's log, which must hold the key, elsewhere.
  os::TemporaryDirectory out = os::TemporaryDirectory::create().value();
  os::TemporaryDirectory elsewhere = os::TemporaryDirectory::create().value();
  TestServer server{TestServer::Kind::plain, elsewhere.path() / "asked.jsonl"};
  std::unique_ptr<os::HttpClient> http = os::make_http_client({}).value();
  os::FakeClock clock;
  Environment environment;
  Limits limits;
  KeptEvents events;
  std::string said;  // every text that came back

  SecretsTest() {
    const auto dotenv = elsewhere.path() / ".env";
    EXPECT_TRUE(os::write_file_atomically(
        dotenv, "OPENAI_BASE_URL=" + server.url() + "\nOPENAI_API_KEY=" + kKey +
                    "\nANTHROPIC_BASE_URL=" + server.url() + "\nANTHROPIC_API_KEY=" + kKey + "\n"));
    environment = Environment::load(dotenv).value();
  }

  void ask(const std::string& spec) {
    const ProviderContext context{clock, *http, environment, limits, events, Rng(1)};
    auto provider = open_provider(spec, context).value();
    provider = with_recording(std::move(provider), out.path() / "recording.jsonl").value();
    const Outcome outcome = provider->complete(
        question("Write it.", "Rules."),
        [&](const Delta& delta) {
          said += "\n";
          said += delta.text;
          return true;
        },
        {});
    said += outcome ? outcome->text + outcome->provider : outcome.error().message;
  }

  // Files that hold the key, below `out`.
  std::vector<std::string> leaks() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out.path())) {
      if (!entry.is_regular_file()) continue;
      const std::string text = os::read_file(entry.path(), 64_MiB).value();
      if (text.find(kKey) != std::string::npos) found.push_back(entry.path().string());
    }
    return found;
  }
};

TEST_F(SecretsTest, NothingThatIsWrittenHoldsAKey) {
  for (const std::string protocol : {"openai:", "anthropic:"}) {
    for (const char* model : {"ok", "401", "429", "500", "cut", "echo-key", "echo-key-error",
                              "bad-sse", "hang-up"}) {
      ask(protocol + model);
    }
  }
  ask("exec:env; cat");
  ask("exec:env >&2; exit 3");
  const auto box = out.path() / "box";
  {
    const std::jthread person([&] {
      while (!os::exists(box / "0001.prompt.md")) std::this_thread::yield();
      EXPECT_TRUE(answer_prompt(box, 1, "an answer"));
    });
    ask("mailbox:" + box.string());
  }
  ASSERT_TRUE(os::write_file_atomically(out.path() / "events.jsonl", events.text));
  ASSERT_TRUE(os::write_file_atomically(out.path() / "said.txt", said));

  EXPECT_EQ(leaks(), std::vector<std::string>());
  EXPECT_NE(events.text.find("llm.retry"), std::string::npos);  // there was something to search
  EXPECT_NE(said.find("int ke_launch"), std::string::npos);
  EXPECT_NE(said.find("[key]"), std::string::npos);
  int headers = 0;
  for (const Json& request : server.asked()) {
    const Json& got = request["headers"];
    const bool there = got.value("Authorization", "") == "Bearer " + kKey ||
                       got.value("x-api-key", "") == kKey;
    headers += there ? 1 : 0;
    EXPECT_EQ(dump_json(request["body"]).find(kKey), std::string::npos);
    EXPECT_EQ(request["path"].get<std::string>().find(kKey), std::string::npos);
  }
  EXPECT_EQ(static_cast<size_t>(headers), server.asked().size());
}

TEST_F(SecretsTest, TheSearchWouldFindALeak) {
  ASSERT_TRUE(os::write_file_atomically(out.path() / "leak.txt", "Bearer " + kKey));
  EXPECT_EQ(leaks().size(), 1U);
}

}  // namespace
}  // namespace ke::test
