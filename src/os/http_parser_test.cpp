// SPDX-License-Identifier: Apache-2.0
#include "os/http_parser.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/rng.hpp"

namespace ke::os {
namespace {

struct Read {
  std::string body;
  bool complete = false;
  bool failed = false;
  int status = 0;
};

Read read(std::string_view bytes, size_t piece, bool close = false, int64_t bytes_max = 1000) {
  HttpResponseParser parser(bytes_max);
  Read result;
  for (size_t at = 0; at < bytes.size() && !result.failed; at += piece) {
    result.failed = !parser.feed(bytes.substr(at, piece), [&](std::string_view part) {
      result.body += part;
      return true;
    });
  }
  if (close && !result.failed) result.failed = !parser.close();
  result.complete = parser.complete();
  result.status = parser.head().status;
  return result;
}

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;name=x\r\nhello\r\nA\r\n, there...\r\n"
    "0\r\nTrailer: 1\r\n\r\n";

TEST(HttpResponseParser, ReadsBodiesOfEachKindInPiecesOfAnySize) {
  for (size_t piece = 1; piece < 40; ++piece) {
    const Read chunked = read(kChunked, piece);
    EXPECT_TRUE(chunked.complete);
    EXPECT_EQ(chunked.body, "hello, there...");
    const Read counted = read("HTTP/1.1 503 Busy\r\nContent-Length: 3\r\n\r\nabcdef", piece);
    EXPECT_TRUE(counted.complete);
    EXPECT_EQ(counted.body, "abc");
    EXPECT_EQ(counted.status, 503);
    const Read closed = read("HTTP/1.0 200\r\n\r\nto the end", piece, true);
    EXPECT_TRUE(closed.complete);
    EXPECT_EQ(closed.body, "to the end");
    const Read after = read("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 No\r\n\r\n", piece);
    EXPECT_TRUE(after.complete);
    EXPECT_EQ(after.status, 204);
  }
}

TEST(HttpResponseParser, FindsHeadersInAnyCase) {
  HttpResponseParser parser(10);
  const std::string head = "HTTP/1.1 429 No\nRETRY-after:  7 \nContent-Length: 0\n\n";
  ASSERT_TRUE(parser.feed(head, [](auto) { return true; }));
  ASSERT_NE(parser.head().header("Retry-After"), nullptr);
  EXPECT_EQ(*parser.head().header("Retry-After"), "7");
  EXPECT_EQ(parser.head().header("Retry"), nullptr);
}

TEST(HttpResponseParser, ACutIsAnErrorAndSaysWhere) {
  HttpResponseParser empty(10);
  EXPECT_EQ(empty.close().error().message, "the server closed the connection without an answer");
  for (size_t length = 0; length < kChunked.size(); ++length) {
    EXPECT_TRUE(read(kChunked.substr(0, length), 7, true).failed) << length;
  }
}

TEST(HttpResponseParser, RefusesWhatIsNoHttpOrTooMuch) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& text :
       {std::string("SSH-2.0-OpenSSH\r\n"), std::string("HTTP/2 200\r\n"),
        std::string("HTTP/1.\r\n"),
        std::string("HTTP/1.1 abc\r\n"), ok + "no colon\r\n", ok + ": no name\r\n",
        ok + "Content-Length: -1\r\n\r\n", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ok + "Content-Length: 99999999999999999999\r\n\r\n", ok + "Content-Encoding: gzip\r\n\r\n",
        ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
        ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        ok + "Transfer-Encoding: chunked\r\n\r\n-5\r\n",
        ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        ok + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'),
        ok + "A: " + std::string(200'000, 'x'), std::string(200'000, 'x')}) {
    EXPECT_TRUE(read(text, 1000).failed) << text.substr(0, 80);
  }
}

TEST(HttpResponseParser, StopsWhenTheReceiverSaysSo) {
  HttpResponseParser parser(1000);
  int pieces = 0;
  ASSERT_TRUE(parser.feed(kChunked, [&](auto) { return ++pieces < 1; }));
  EXPECT_TRUE(parser.stopped());
  EXPECT_EQ(pieces, 1);
}

TEST(HttpResponseParser, SurvivesMutations) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::string text = kChunked;
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())));
      if (rng.chance(0.5)) text[at] = static_cast<char>(rng.below(256));
      if (rng.chance(0.3)) text.insert(at, text.substr(static_cast<size_t>(rng.below(20)), 15));
      if (rng.chance(0.2)) text.erase(at, 2);
    }
    const Read result = read(text, static_cast<size_t>(1 + rng.below(20)), true, 100);
    EXPECT_LE(result.body.size(), 100U);
    EXPECT_NE(result.complete, result.failed);
  }
}

}  // namespace
}  // namespace ke::os
