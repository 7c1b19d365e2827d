// SPDX-License-Identifier: Apache-2.0
//
// Markdown's fenced blocks, found line by line, so that the same code reads a whole answer and one
// that is still being written.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ke::llm {

// A stretch of an answer: a fenced block, or the prose between two.
struct Segment {
  bool fenced = false;
  bool complete = true;  // false: a fence that was not closed
  std::string info;      // what stands behind the opening fence: "cpp"
  std::string text;      // lines, each ended by '\n'
};

class SegmentScanner {
 public:
  // The next line, without its end. True when it closed a fence: last() is that block.
  bool take(std::string_view line);
  // Ends what is open; nothing may follow.
  void finish();

  const std::vector<Segment>& segments() const { return segments_; }
  const Segment& last() const { return segments_.back(); }
  // The fenced block that the lines so far are inside of, as far as it was read; else null.
  const Segment* open() const { return fence_length_ == 0 ? nullptr : &current_; }

 private:
  void close_segment(bool complete);

  std::vector<Segment> segments_;
  Segment current_;
  char fence_ = '`';
  size_t fence_length_ = 0;  // 0: outside
  size_t indent_ = 0;
};

// The first line of prose, without markup, at most bytes_max and whole characters.
std::string first_prose_line(const std::vector<Segment>& segments, size_t bytes_max);

bool is_blank(std::string_view text);
// Behind blanks, with one of these.
bool begins_like(std::string_view text, std::initializer_list<std::string_view> starts);
bool looks_like_json(const Segment& segment);
// Whether brackets nest so deeply that only mischief explains it: printing JSON nests as deeply.
bool nests_too_deeply(std::string_view json);
std::string_view without_end_blanks(std::string_view line);  // no blanks at its end
// Takes the next line off `rest`; without its end, to which a '\r' before the '\n' belongs.
std::string_view next_line(std::string_view& rest);

}  // namespace ke::llm
