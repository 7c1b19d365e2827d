// SPDX-License-Identifier: Apache-2.0
#include "mcp/lines.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/rng.hpp"
#include "os/file_descriptor.hpp"

namespace ke::mcp {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    from = os::FileDescriptor(ends[0]);
    to = os::FileDescriptor(ends[1]);
  }
  void put(std::string_view text) {
    EXPECT_EQ(::write(to.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  os::FileDescriptor from, to;
};

// What a reader makes of the text, "<too long>" in place of such a line.
std::vector<std::string> lines_of(LineReader& reader) {
  std::vector<std::string> lines;
  std::string line;
  for (;;) {
    const LineEnd end = reader.next(line);
    if (end == LineEnd::end || end == LineEnd::stopped) return lines;
    lines.push_back(end == LineEnd::line ? line : "<too long>");
  }
}

std::vector<std::string> lines_of(std::string_view text, int64_t bytes_max) {
  Pipe pipe;
  pipe.put(text);
  pipe.to.reset();
  LineReader reader(pipe.from.get(), -1, bytes_max);
  return lines_of(reader);
}

using Lines = std::vector<std::string>;

TEST(Lines, AreWhatLiesBetweenLineEnds) {
  EXPECT_EQ(lines_of("one\n\ntwo\n", 10), (Lines{"one", "", "two"}));
  EXPECT_EQ(lines_of("one\nno end", 10), (Lines{"one", "no end"}));
  EXPECT_EQ(lines_of("", 10), Lines{});
}

TEST(Lines, LongerThanAllowedAreReportedOnceAndSkipped) {
  EXPECT_EQ(lines_of("exactly10!\nok\n", 10), (Lines{"exactly10!", "ok"}));
  EXPECT_EQ(lines_of("more than10\nok\n", 10), (Lines{"<too long>", "ok"}));
  EXPECT_EQ(lines_of("more than10", 10), (Lines{"<too long>"}));
}

// The pieces in which the bytes arrive make no difference.
TEST(Lines, AreTheSameHoweverTheyArrive) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Pipe pipe;
    LineReader reader(pipe.from.get(), -1, 8);
    Lines expected, found;
    std::string line;
    for (int i = 0; i < 6; ++i) {
      const std::string text(static_cast<size_t>(rng.below(14)), 'x');
      expected.push_back(text.size() <= 8 ? text : "<too long>");
      const auto cut = static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()) + 1));
      pipe.put(text.substr(0, cut));
      pipe.put(text.substr(cut) + "\n");
      found.push_back(reader.next(line) == LineEnd::line ? line : "<too long>");
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(Lines, EndWhenSomebodyStopsTheReader) {
  Pipe input, stop;
  LineReader reader(input.from.get(), stop.from.get(), 10);
  stop.put("!");
  std::string line;
  EXPECT_EQ(reader.next(line), LineEnd::stopped);
}

}  // namespace
}  // namespace ke::mcp
