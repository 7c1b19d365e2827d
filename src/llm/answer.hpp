// SPDX-License-Identifier: Apache-2.0
//
// Reads a kernel out of what a model wrote: a fenced block, a whole file, search/replace edits, a
// unified diff, or a JSON plan; or the tool that it asks for first. The text is hostile input of
// any shape. What cannot be used is a typed fault with a sentence for the next prompt.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "base/enum_names.hpp"
#include "llm/provider.hpp"
#include "llm/tool_call.hpp"

namespace ke::llm {

// What an answer has to be.
struct AnswerContract {
  std::string entry = "ke_launch";  // what a source must contain, in code or comment
  std::string base;                 // the source that edits and diffs apply to; empty: none
  bool sources = true;              // whole sources, edits and diffs are welcome
  bool plans = false;               // a JSON object or array is welcome
  bool tools = false;               // a block of the language `tool` asks for a tool
  int64_t source_bytes_max = int64_t{1} << 20;
};

enum class AnswerForm : uint8_t { source, edits, diff, plan, tool };

struct Answer {
  AnswerForm form = AnswerForm::source;
  std::string source;  // after edits and diffs were applied; empty for a plan and a tool
  std::string plan;    // JSON text, one line; empty for a source
  std::string note;    // the first line of prose, at most 200 bytes; may be empty
  std::optional<ToolCall> tool = std::nullopt;  // of the form tool, with the kernel it is for
};

enum class AnswerFault : uint8_t {
  empty,           // no text at all
  nothing_usable,  // no block, edit, diff or plan
  cut_off,         // the answer ended in the middle of a block
  lacks_entry,     // a source without the entry
  too_large,
  not_text,    // holds NUL bytes
  no_base,     // edits, but there is nothing to edit
  bad_edit,    // markers out of order, or an empty SEARCH
  not_found,   // the text of a SEARCH or a diff's context is not in the base
  ambiguous,   // it is there more than once
  unchanged,   // the kernel is still the base
  bad_diff,    // not a unified diff
  bad_json,    // a plan, or other JSON, that does not parse
  bad_tool,    // no tool we have, or more than one call
  bad_fields   // JSON that is not what was asked for (llm/answer_json.hpp and its readers)
};

struct AnswerProblem {
  AnswerFault fault = AnswerFault::empty;
  std::string sentence;  // for the next prompt: what was wrong and what to write
};

using AnswerResult = tl::expected<Answer, AnswerProblem>;

// Reads a whole answer. Of several whole sources the last complete one that holds the entry counts;
// edits and diffs are applied in the order written. When both occur, the last decides. Whatever
// else an answer holds, a tool block decides; it is never a source, nor part of one.
AnswerResult parse_answer(std::string_view text, FinishReason finish,
                          const AnswerContract& contract);

// Reads an answer while it is written.
class AnswerStream {
 public:
  explicit AnswerStream(AnswerContract contract);
  AnswerStream(AnswerStream&&) noexcept;
  AnswerStream& operator=(AnswerStream&&) noexcept;
  ~AnswerStream();

  // A whole source (or plan) as soon as the fence of its block has closed, the last one when the
  // delta closes several. Edits wait for finish(), since more of them may follow. Nothing once a
  // tool block has begun. A delta of a later attempt starts anew.
  std::optional<Answer> feed(const Delta& delta);

  // As parse_answer on all that was fed.
  AnswerResult finish(FinishReason reason) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ke::llm

template <>
inline constexpr std::array<std::string_view, 5> ke::kEnumNames<ke::llm::AnswerForm>{
    "source", "edits", "diff", "plan", "tool"};
template <>
inline constexpr std::array<std::string_view, 15> ke::kEnumNames<ke::llm::AnswerFault>{
    "empty",    "nothing_usable", "cut_off",   "lacks_entry", "too_large",
    "not_text", "no_base",        "bad_edit",  "not_found",   "ambiguous",
    "unchanged", "bad_diff",      "bad_json",  "bad_tool",    "bad_fields"};
