// SPDX-License-Identifier: Apache-2.0
//
// Embeddings end to end: transport, retry, HTTP client and server, with every fault.
#include <gtest/gtest.h>

#include "llm/embedder.hpp"
#include "llm/testing.hpp"
#include "test_server.hpp"

namespace ke::test {
namespace {

struct EmbeddingsTest : ::testing::Test {
  os::TemporaryDirectory folder = os::TemporaryDirectory::create().value();
  TestServer server{TestServer::Kind::plain, folder.path() / "asked.jsonl"};
  std::unique_ptr<os::HttpClient> http = os::make_http_client({}).value();
  os::FakeClock clock;  // waits in no time
  llm::Environment environment{
      {{"OPENAI_BASE_URL", server.url()}, {"OPENAI_API_KEY", "sk-test-0123456789"}}};
  Limits limits;
  llm::KeptEvents events;

  llm::VectorsOrFailure embed(const std::string& model) {
    const llm::ProviderContext context{clock, *http, environment, limits, events, Rng(1)};
    return llm::make_embedder(llm::open_embedding_transport("openai:" + model, context).value())
        ->embed({"a zebra", "a quagga", "softmax"}, {});
  }
};

TEST_F(EmbeddingsTest, ComeInTheOrderOfTheTexts) {
  for (const char* model : {"ok", "backwards"}) {
    SCOPED_TRACE(model);
    const llm::VectorsOrFailure vectors = embed(model);
    ASSERT_TRUE(vectors) << vectors.error().message;
    ASSERT_EQ(vectors->size(), 3u);
    EXPECT_EQ((*vectors)[0], (*vectors)[1]);
    EXPECT_GT((*vectors)[2][1], (*vectors)[0][1]);
  }
  const Json asked = server.asked().front();
  EXPECT_EQ(asked["path"], "/v1/embeddings");
  EXPECT_EQ(asked["headers"]["Authorization"], "Bearer sk-test-0123456789");
}

TEST_F(EmbeddingsTest, WaitForAnEndpointThatAsksForAPause) {
  const Nanoseconds start = clock.now();
  EXPECT_TRUE(embed("429-once"));
  EXPECT_EQ(clock.now() - start, std::chrono::seconds(2));  // its Retry-After, by the fake clock
  EXPECT_EQ(server.asked().size(), 2u);
}

TEST_F(EmbeddingsTest, FailByKind) {
  using enum llm::FailureKind;
  struct Case {
    const char* model;
    llm::FailureKind kind;
    size_t calls;
    const char* says;
  };
  const Case cases[] = {{"wrong-dimension", malformed, 3, "numbers and then"},
                        {"wrong-count", malformed, 3, "2 vectors came for 3 texts"},
                        {"nan", malformed, 3, ""},
                        {"huge", unreachable, 3, ""},
                        {"429", rate_limited, 3, "slow down"},
                        {"529", overloaded, 3, ""},
                        {"404", refused, 1, "no such model"},
                        {"401", unauthorized, 1, "check OPENAI_API_KEY"}};
  for (const Case& each : cases) {
    SCOPED_TRACE(each.model);
    const size_t before = server.asked().size();
    const llm::VectorsOrFailure vectors = embed(each.model);
    ASSERT_FALSE(vectors);
    EXPECT_EQ(vectors.error().kind, each.kind) << vectors.error().message;
    EXPECT_NE(vectors.error().message.find(each.says), std::string::npos)
        << vectors.error().message;
    EXPECT_EQ(vectors.error().message.find("sk-test"), std::string::npos);
    EXPECT_EQ(server.asked().size() - before, each.calls);
  }
  server.kill();
  const llm::VectorsOrFailure gone = embed("ok");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, unreachable);
}

}  // namespace
}  // namespace ke::test
