// SPDX-License-Identifier: Apache-2.0
#include "llm/answer_json.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "llm/answer_blocks.hpp"

namespace ke::llm {

namespace {

AnswerProblem problem_with(AnswerFault fault, std::string_view wrong, std::string_view what) {
  return {fault, fmt::format("{}; write {} as one JSON object in a fenced block, and nothing else.",
                             wrong, what)};
}

// The text that should be the object; null when no stretch of the answer looks like one.
const Segment* object_in(const std::vector<Segment>& segments, FinishReason finish) {
  const Segment* last = nullptr;
  for (const Segment& segment : segments) {
    // A model that was done and forgot the closing fence has still written a whole block.
    const bool whole = segment.complete || finish == FinishReason::stop;
    if (whole && segment.fenced && looks_like_json(segment)) last = &segment;
  }
  const bool bare = segments.size() == 1 && !segments.front().fenced &&
                    finish != FinishReason::length && begins_like(segments.front().text, {"{"});
  return bare ? &segments.front() : last;
}

}  // namespace

JsonResult parse_json_answer(std::string_view text, FinishReason finish, std::string_view what) {
  const auto wrong = [&](AnswerFault fault, std::string_view sentence) {
    return tl::make_unexpected(problem_with(fault, sentence, what));
  };
  if (is_blank(text)) return wrong(AnswerFault::empty, "The answer was empty");
  SegmentScanner scanner;
  while (!text.empty()) scanner.take(next_line(text));
  scanner.finish();
  const std::vector<Segment>& segments = scanner.segments();
  const Segment* found = object_in(segments, finish);
  if (found == nullptr) {
    const bool open = std::ranges::any_of(segments, [](const Segment& s) { return !s.complete; });
    if (open || finish == FinishReason::length) {
      return wrong(AnswerFault::cut_off, "The answer ended before its JSON did");
    }
    return wrong(AnswerFault::nothing_usable, "The answer holds no JSON");
  }
  if (found->text.size() > kAnswerJsonBytesMax) {
    return wrong(AnswerFault::too_large, fmt::format("The JSON has {} bytes, and {} are allowed",
                                                     found->text.size(), kAnswerJsonBytesMax));
  }
  if (nests_too_deeply(found->text)) {
    return wrong(AnswerFault::bad_json, "The JSON nests too deeply");
  }
  Result<Json> json = parse_json(found->text);
  if (!json) {
    return wrong(AnswerFault::bad_json, fmt::format("The JSON is {}", json.error().message));
  }
  if (!json->is_object()) return wrong(AnswerFault::bad_json, "The JSON is no object");
  return std::move(*json);
}

}  // namespace ke::llm
