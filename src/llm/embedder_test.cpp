// SPDX-License-Identifier: Apache-2.0
#include "llm/embedder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "llm/budget.hpp"
#include "llm/testing.hpp"

namespace ke::llm {
namespace {

// What a server answers with: "[1, 2]" is a vector.
os::FakeReply vectors_reply(const std::vector<std::string>& vectors, int64_t tokens = 7) {
  std::string data;
  for (size_t i = 0; i < vectors.size(); ++i) {
    data += (i == 0 ? "" : ",") + std::string(R"({"object": "embedding", "index": )") +
            std::to_string(i) + R"(, "embedding": )" + vectors[i] + "}";
  }
  return {200,
          {{"Content-Type", "application/json"}},
          {R"({"object": "list", "data": [)" + data + R"(], "usage": {"prompt_tokens": )" +
           std::to_string(tokens) + "}}"}};
}

struct EmbedderTest : ::testing::Test {
  Bench bench{{{"OPENAI_BASE_URL", "http://h:1"}, {"OPENAI_API_KEY", "sk-test-0123"}}};

  std::unique_ptr<Embedder> open(const std::string& model = "m") {
    return make_embedder(
        open_embedding_transport("openai:" + model, bench.context()).value());
  }
  void reply(const std::string& body) {
    bench.http.add({200, {{"Content-Type", "application/json"}}, {body}});
  }
  size_t calls() const { return bench.http.requests().size(); }
};

TEST_F(EmbedderTest, SpeaksTheProtocolAndPutsVectorsInOrder) {
  reply(R"({"data": [{"index": 1, "embedding": [0, 2.5]}, {"index": 0, "embedding": [1, -1]}]})");
  const VectorsOrFailure vectors = open()->embed({"first", "second"}, {});
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ(*vectors, (Vectors{{1, -1}, {0, 2.5}}));
  const os::HttpRequest& request = bench.http.requests().front();
  EXPECT_EQ(request.url, "http://h:1/v1/embeddings");
  EXPECT_EQ(parse_json(request.body).value(),
            parse_json(R"({"model": "m", "input": ["first", "second"]})").value());
  const auto key = std::ranges::find(request.headers, "Authorization", &os::HttpHeader::name);
  ASSERT_NE(key, request.headers.end());
  EXPECT_EQ(key->value, "Bearer sk-test-0123");
}

TEST_F(EmbedderTest, RefusesWhatWouldRankAtRandomAfterTryingAgain) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"data": [{"embedding": [1, 2]}]})", "1 vectors came for 2 texts"},
      {R"({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]})", "have 1 numbers and then 2"},
      {R"({"data": [{"embedding": [1, NaN]}, {"embedding": [1, 2]}]})", "JSON"},
      {R"({"data": [{"embedding": [1, null]}, {"embedding": [1, 2]}]})", "text 0 is not one of"},
      {R"({"data": [{"embedding": [1, 1e300]}, {"embedding": [1, 2]}]})", "text 0 is not one of"},
      {R"({"data": [{"embedding": [0, 0]}, {"embedding": [1, 2]}]})", "some of them not 0"},
      {R"({"data": [{"embedding": []}, {"embedding": []}]})", "text 0 is not one of"},
      {R"({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]})",
       "text 0 has two vectors"},
      {R"({"data": [{"index": 7, "embedding": [1]}, {"embedding": [1]}]})", "no text 7"},
      {R"({"data": [3, {"embedding": [1]}]})", "no object"},
      {R"({"embedding": [1, 2]})", "no list 'data'"},
      {R"([1, 2])", "not a JSON object"}};
  for (const auto& [body, says] : cases) {
    SCOPED_TRACE(body);
    const size_t before = calls();
    for (int i = 0; i < 3; ++i) reply(body);
    const VectorsOrFailure vectors = open()->embed({"a", "b"}, {});
    ASSERT_FALSE(vectors);
    EXPECT_EQ(vectors.error().kind, FailureKind::malformed);
    EXPECT_NE(vectors.error().message.find(says), std::string::npos) << vectors.error().message;
    EXPECT_EQ(calls() - before, 3u);
  }
}

TEST_F(EmbedderTest, AsksInBatches) {
  const std::vector<std::string> texts(kTextsPerCall + 3, "t");
  bench.http.add(vectors_reply(std::vector<std::string>(kTextsPerCall, "[1, 0]")));
  bench.http.add(vectors_reply({"[0, 1]", "[0, 1]", "[0, 1]"}));
  const VectorsOrFailure vectors = open()->embed(texts, {});
  ASSERT_TRUE(vectors) << vectors.error().message;
  ASSERT_EQ(vectors->size(), texts.size());
  EXPECT_EQ(vectors->front(), (std::vector<float>{1, 0}));
  EXPECT_EQ(vectors->back(), (std::vector<float>{0, 1}));
  bench.http.add(vectors_reply(std::vector<std::string>(kTextsPerCall, "[1, 0]")));
  bench.http.add(vectors_reply({"[0, 1, 2]", "[0, 1, 2]", "[0, 1, 2]"}));
  EXPECT_FALSE(open()->embed(texts, {})) << "another length from batch to batch";
}

TEST_F(EmbedderTest, IsPaidInTokensAndMoneyButIsNoCall) {
  LlmBudget budget({.calls = 1, .tokens = 100, .usd = 1.0, .time = {}});
  const auto embedder = make_embedder(
      with_budget(open_embedding_transport("openai:m", bench.context()).value(), budget,
                  Price{.input = 10, .cached_input = 10, .cache_write = 10, .output = 40}, false));
  for (int i = 0; i < 2; ++i) {
    bench.http.add(vectors_reply({"[1]"}, 40));
    ASSERT_TRUE(embedder->embed({"text"}, {}));
  }
  EXPECT_EQ(budget.spent().calls, 0);
  EXPECT_EQ(budget.spent().tokens, 80) << "the vectors themselves are no tokens";
  EXPECT_DOUBLE_EQ(budget.spent().usd, 80 * 10 / 1e6);
  const VectorsOrFailure refused = embedder->embed({std::string(300, 'x')}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, FailureKind::budget);
  EXPECT_EQ(calls(), 2u);
}

TEST_F(EmbedderTest, ACacheAsksForEachTextOnce) {
  const auto folder = bench.folder.path() / "vectors";
  bench.http.add(vectors_reply({"[1, 0]", "[0.1, 1]"}));
  EXPECT_TRUE(with_cache(open(), folder, bench.events)->embed({"a", "b"}, {}));
  bench.http.add(vectors_reply({"[3, 3]"}));
  const auto again = with_cache(open(), folder, bench.events);
  const VectorsOrFailure vectors = again->embed({"b", "c", "a"}, {});
  ASSERT_TRUE(vectors) << vectors.error().message;
  EXPECT_EQ(*vectors, (Vectors{{0.1f, 1}, {3, 3}, {1, 0}}));
  EXPECT_EQ(parse_json(bench.http.requests().back().body)->at("input"), Json::array({"c"}));
  // Another model's are others.
  bench.http.add(vectors_reply({"[9, 9]"}));
  EXPECT_EQ(*with_cache(open("n"), folder, bench.events)->embed({"a"}, {}), (Vectors{{9, 9}}));
  EXPECT_EQ(calls(), 3u);
  EXPECT_TRUE(bench.events.text.empty()) << bench.events.text;
}

TEST_F(EmbedderTest, ACacheThatIsDamagedOrOfNoUseIsNotBelieved) {
  const auto folder = bench.folder.path() / "vectors";
  const auto embedder = with_cache(open(), folder, bench.events);
  bench.http.add(vectors_reply({"[1, 0]"}));
  ASSERT_TRUE(embedder->embed({"a"}, {}));
  const std::filesystem::path file = *std::filesystem::directory_iterator(folder);
  const float broken[] = {1, std::numeric_limits<float>::quiet_NaN()};
  const std::string bad[] = {"", "abc", std::string(reinterpret_cast<const char*>(broken), 8)};
  for (const std::string& bytes : bad) {
    ASSERT_TRUE(os::write_file_atomically(file, bytes));
    bench.http.add(vectors_reply({"[0, 1]"}));
    EXPECT_EQ(*embedder->embed({"a"}, {}), (Vectors{{0, 1}}));
  }
  bench.http.add(vectors_reply({"[1, 2, 3]"}));
  const VectorsOrFailure mixed = embedder->embed({"a", "new"}, {});
  ASSERT_FALSE(mixed) << "the model's vectors have become longer";
  EXPECT_NE(mixed.error().message.find("delete"), std::string::npos);
  // A folder that cannot be made costs the cache, not the search, and is told once.
  const auto nowhere = with_cache(open(), "/proc/none/vectors", bench.events);
  for (int i = 0; i < 2; ++i) {
    bench.http.add(vectors_reply({"[1, 0]"}));
    EXPECT_TRUE(nowhere->embed({"a"}, {}));
  }
  const size_t told = bench.events.text.find("vectors are not kept");
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(bench.events.text.find("vectors are not kept", told + 1), std::string::npos);
}

TEST_F(EmbedderTest, WhatCameBeforeAFailureIsKept) {
  const auto folder = bench.folder.path() / "vectors";
  std::vector<std::string> texts;
  for (size_t i = 0; i < kTextsPerCall + 1; ++i) texts.push_back("text " + std::to_string(i));
  bench.http.add(vectors_reply(std::vector<std::string>(kTextsPerCall, "[1, 0]")));
  bench.http.add({.status = 404, .chunks = {R"({"error": {"message": "gone"}})"}});
  EXPECT_FALSE(with_cache(open(), folder, bench.events)->embed(texts, {}));
  bench.http.add(vectors_reply({"[0, 1]"}));
  EXPECT_TRUE(with_cache(open(), folder, bench.events)->embed(texts, {}));
  EXPECT_EQ(calls(), 3u);
}

TEST_F(EmbedderTest, IsNamedLikeAModel) {
  const auto refused = [&](const char* spec) {
    return open_embedding_transport(spec, bench.context()).error().message;
  };
  for (const char* spec : {"anthropic:m", "exec:cat", "openai", "openai:", "none:m"}) {
    EXPECT_EQ(refused(spec), "'" + std::string(spec) +
                                 "' names no model that makes embeddings; write openai:NAME");
  }
  Bench empty;
  EXPECT_NE(open_embedding_transport("openai:m", empty.context())
                .error()
                .message.find("OPENAI_API_KEY is not set"),
            std::string::npos);
}

}  // namespace
}  // namespace ke::llm
