// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.hpp"

#include <gtest/gtest.h>

namespace ke::llm {
namespace {

std::string events_in(std::string_view bytes, size_t piece) {
  SseReader reader(1000);
  std::string seen;
  const auto receive = [&](const SseEvent& event) {
    seen += event.name + "(" + event.data + ")";
    return true;
  };
  for (size_t at = 0; at < bytes.size(); at += piece) {
    EXPECT_TRUE(reader.feed(bytes.substr(at, piece), receive));
  }
  EXPECT_TRUE(reader.finish(receive));
  return seen;
}

TEST(Sse, ReadsEventsWhateverTheirLineEndsAndPieces) {
  const std::string text =
      "\xEF\xBB\xBF"
      "event: start\ndata: {\"a\":1}\n\n: comment\n\nid: 7\ndata:one\ndata: two\n\nevent: empty\n\n"
      "data\n\ndata: last";
  std::string crlf, cr;
  for (const char c : text) {
    crlf += c == '\n' ? "\r\n" : std::string(1, c);
    cr += c == '\n' ? '\r' : c;
  }
  const std::string expected = "start({\"a\":1})(one\ntwo)()(last)";
  for (size_t piece = 1; piece < 30; ++piece) {
    EXPECT_EQ(events_in(text, piece), expected);
    EXPECT_EQ(events_in(crlf, piece), expected);
    EXPECT_EQ(events_in(cr, piece), expected);
  }
}

TEST(Sse, EndsWhenTheReceiverSaysSo) {
  SseReader reader(1000);
  int count = 0;
  const auto more = reader.feed("data: 1\n\ndata: 2\n\n", [&](const SseEvent&) {
    ++count;
    return false;
  });
  EXPECT_FALSE(*more);
  EXPECT_EQ(count, 1);
}

TEST(Sse, LimitsAnEvent) {
  const auto ignore = [](const SseEvent&) { return true; };
  SseReader line(100);
  EXPECT_FALSE(line.feed("data: " + std::string(200, 'x'), ignore));
  SseReader lines(100);
  std::string many;
  for (int i = 0; i < 50; ++i) many += "data: xxxx\n";
  EXPECT_FALSE(lines.feed(many, ignore));
}

}  // namespace
}  // namespace ke::llm
