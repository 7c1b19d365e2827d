// SPDX-License-Identifier: Apache-2.0
#include "llm/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.hpp"
#include "llm/answer_blocks.hpp"
#include "llm/answer_edits.hpp"

namespace ke::llm {

namespace {

constexpr size_t kNoteBytesMax = 200;

bool looks_like_source(std::string_view text) {
  return begins_like(text, {"//", "/*", "#include", "#pragma", "#define", "#if", "extern ",
                            "namespace", "template", "static ", "using ", "constexpr ", "import ",
                            "from ", "\"\"\""});
}

bool holds(const Segment& segment, const AnswerContract& contract) {
  return segment.text.find(contract.entry) != std::string::npos;
}

// Information behind a fence may say more than the language.
bool asks_for_tool(const Segment& segment, const AnswerContract& contract) {
  const std::string_view info = segment.info;
  return contract.tools && segment.fenced && info.substr(0, info.find_first_of(" \t")) == "tool";
}

// What a stretch of the answer is good for; nothing for prose and for blocks of other things.
std::optional<AnswerForm> form_of(const Segment& segment, const AnswerContract& contract) {
  if (contract.plans && segment.fenced && looks_like_json(segment)) return AnswerForm::plan;
  if (!contract.sources) return std::nullopt;
  if (holds_search_marker(segment.text)) return AnswerForm::edits;
  const bool said = segment.info == "diff" || segment.info == "patch";
  if (said || holds_hunk(segment.text)) return AnswerForm::diff;
  if (segment.fenced && holds(segment, contract)) return AnswerForm::source;
  return std::nullopt;
}

AnswerResult accept_source(AnswerForm form, std::string source, const AnswerContract& contract) {
  if (is_blank(source)) return problem(AnswerFault::nothing_usable, "The kernel is empty.");
  if (source.find('\0') != std::string::npos) {
    return problem(AnswerFault::not_text, "The kernel holds NUL bytes; write plain text.");
  }
  if (static_cast<int64_t>(source.size()) > contract.source_bytes_max) {
    return problem(AnswerFault::too_large,
                   fmt::format("The kernel has {} bytes, and {} are allowed; write a shorter one.",
                               source.size(), contract.source_bytes_max));
  }
  if (source.find(contract.entry) == std::string::npos) {
    return problem(AnswerFault::lacks_entry,
                   fmt::format("The kernel does not define {}; write the whole source with it.",
                               contract.entry));
  }
  if (source == contract.base) {
    return problem(AnswerFault::unchanged,
                   "The kernel is the one you were given; change something that matters.");
  }
  Answer answer;
  answer.form = form;
  answer.source = std::move(source);
  return answer;
}

AnswerResult accept_plan(std::string_view text) {
  if (nests_too_deeply(text)) {
    return problem(AnswerFault::bad_json, "The plan nests too deeply to be one.");
  }
  const Result<Json> json = parse_json(text);
  if (!json) {
    return problem(AnswerFault::bad_json,
                   fmt::format("The plan is {}; write one JSON value and nothing else in its "
                               "block.",
                               json.error().message));
  }
  if (!json->is_structured() || json->empty()) {
    return problem(AnswerFault::bad_json, "The plan is no JSON object or array with entries.");
  }
  Answer answer;
  answer.form = AnswerForm::plan;
  answer.plan = dump_json(*json);
  return answer;
}

// All edits and hunks of the answer, in the order written.
AnswerResult accept_edits(const std::vector<Segment>& segments, const AnswerContract& contract,
                          AnswerForm last) {
  std::vector<Edit> edits;
  for (const Segment& segment : segments) {
    const std::optional<AnswerForm> form = form_of(segment, contract);
    if (form != AnswerForm::edits && form != AnswerForm::diff) continue;
    const EditsResult parsed = form == AnswerForm::edits
                                   ? parse_search_replace(segment.text)
                                   : parse_diff(segment.text, segment.fenced);
    if (!parsed) return tl::make_unexpected(parsed.error());
    edits.insert(edits.end(), parsed->begin(), parsed->end());
  }
  const bool adds_only = std::ranges::all_of(edits, [](const Edit& e) { return e.before.empty(); });
  if (edits.empty()) {
    return problem(AnswerFault::bad_diff, "The diff changes no line; write its hunks in full.");
  }
  if (contract.base.empty() && !(adds_only && edits.size() == 1)) {
    return problem(AnswerFault::no_base,
                   "There is no kernel to edit yet; write the whole source in one block.");
  }
  if (!contract.base.empty() && last == AnswerForm::edits &&
      std::ranges::any_of(edits, [](const Edit& e) { return e.before.empty(); })) {
    return problem(AnswerFault::bad_edit,
                   "The SEARCH part of an edit is empty; copy into it the lines to be replaced.");
  }
  OrProblem<std::string> source = apply_edits(contract.base, edits);
  if (!source) return tl::make_unexpected(source.error());
  return accept_source(last, std::move(*source), contract);
}

AnswerResult nothing_usable(const std::vector<Segment>& segments, FinishReason finish,
                            const AnswerContract& contract) {
  const bool open = std::ranges::any_of(segments, [](const Segment& s) { return !s.complete; });
  if (open || finish == FinishReason::length) {
    return problem(AnswerFault::cut_off,
                   "The answer ended before its code did; write less prose and a shorter kernel.");
  }
  const bool fenced = std::ranges::any_of(segments, [](const Segment& s) { return s.fenced; });
  if (fenced && contract.sources) {
    return problem(AnswerFault::lacks_entry,
                   fmt::format("No block of the answer defines {}; write the whole source with it "
                               "in one fenced block.",
                               contract.entry));
  }
  const char* wanted = contract.sources ? "the whole source, or edits of it, in a fenced block"
                                        : "the plan as JSON in a fenced block";
  return problem(AnswerFault::nothing_usable, fmt::format("The answer holds no code; write {}.",
                                                          wanted));
}

// A whole answer without any fence.
std::optional<AnswerResult> read_bare(const std::vector<Segment>& segments, FinishReason finish,
                                      const AnswerContract& contract) {
  if (segments.size() != 1 || segments.front().fenced || finish == FinishReason::length) {
    return std::nullopt;
  }
  const std::string& text = segments.front().text;
  if (contract.plans && begins_like(text, {"{", "["})) return accept_plan(text);
  const bool source = contract.sources && !form_of(segments.front(), contract) &&
                      looks_like_source(text) && holds(segments.front(), contract);
  if (!source) return std::nullopt;
  return accept_source(AnswerForm::source, text, contract);
}

AnswerResult read_segments(const std::vector<Segment>& segments, FinishReason finish,
                           const AnswerContract& contract);

// The one tool that the answer asks for, with the kernel it is for.
AnswerResult read_tool(const std::vector<Segment>& segments, FinishReason finish,
                       const AnswerContract& contract) {
  std::vector<Segment> calls, others;
  for (const Segment& segment : segments) {
    (asks_for_tool(segment, contract) ? calls : others).push_back(segment);
  }
  if (calls.size() > 1) {
    return problem(AnswerFault::bad_tool,
                   fmt::format("The answer holds {} tool blocks; use one tool, and wait for what "
                               "it gives.",
                               calls.size()));
  }
  if (!calls[0].complete && finish != FinishReason::stop) {
    return problem(AnswerFault::cut_off,
                   "The answer ended before its tool block did; write less prose.");
  }
  Result<ToolCall> call = parse_tool_call(calls[0].text);
  if (!call) {
    return problem(AnswerFault::bad_tool,
                   fmt::format("The tool block cannot be used: {}. Write one JSON object in it, as "
                               "the list of tools shows.",
                               call.error().message));
  }
  if (takes_source(call->tool)) {
    AnswerContract plain = contract;
    plain.tools = plain.plans = false;
    AnswerResult source = read_segments(others, finish, plain);
    if (!source) {
      return problem(source.error().fault,
                     fmt::format("The tool {} needs a kernel in the same answer. {}",
                                 enum_name(call->tool), source.error().sentence));
    }
    call->source = std::move(source->source);
  }
  Answer answer;
  answer.form = AnswerForm::tool;
  answer.tool = std::move(*call);
  return answer;
}

AnswerResult read_segments(const std::vector<Segment>& segments, FinishReason finish,
                           const AnswerContract& contract) {
  if (std::ranges::any_of(segments,
                          [&](const Segment& s) { return asks_for_tool(s, contract); })) {
    return read_tool(segments, finish, contract);
  }
  if (std::optional<AnswerResult> bare = read_bare(segments, finish, contract)) return *bare;
  const Segment* last = nullptr;
  for (const Segment& segment : segments) {
    // A model that was done and forgot the closing fence has still written a whole block.
    const bool whole = segment.complete || finish == FinishReason::stop;
    if (whole && form_of(segment, contract)) last = &segment;
  }
  if (last == nullptr) return nothing_usable(segments, finish, contract);
  const AnswerForm form = *form_of(*last, contract);
  if (form == AnswerForm::plan) return accept_plan(last->text);
  if (form == AnswerForm::source) return accept_source(form, last->text, contract);
  const bool cut = finish == FinishReason::length;
  if (cut) {  // of several edits the last may be missing: half of a change is none
    return problem(AnswerFault::cut_off,
                   "The answer ended before its edits did; write fewer or shorter ones.");
  }
  return accept_edits(segments, contract, form);
}

}  // namespace

AnswerResult parse_answer(std::string_view text, FinishReason finish,
                          const AnswerContract& contract) {
  if (is_blank(text)) {
    return problem(AnswerFault::empty, finish == FinishReason::length
                                           ? "The answer ended before it began; think less."
                                           : "The answer was empty; write the kernel.");
  }
  SegmentScanner scanner;
  while (!text.empty()) scanner.take(next_line(text));
  scanner.finish();
  AnswerResult result = read_segments(scanner.segments(), finish, contract);
  if (result) {
    const bool bare = scanner.segments().size() == 1 && !scanner.last().fenced;
    if (!bare) result->note = first_prose_line(scanner.segments(), kNoteBytesMax);
  }
  return result;
}

struct AnswerStream::State {
  AnswerContract contract;
  std::string text;
  size_t read = 0;  // of the text: up to the last whole line
  int attempt = 0;
  SegmentScanner scanner;
  bool tool = false;  // a tool block has begun
};

AnswerStream::AnswerStream(AnswerContract contract) : state_(std::make_unique<State>()) {
  state_->contract = std::move(contract);
}
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream& AnswerStream::operator=(AnswerStream&&) noexcept = default;
AnswerStream::~AnswerStream() = default;

std::optional<Answer> AnswerStream::feed(const Delta& delta) {
  if (delta.attempt != state_->attempt) {
    AnswerContract contract = std::move(state_->contract);
    *state_ = State{std::move(contract), {}, 0, delta.attempt, {}, false};
  }
  state_->text.append(delta.text);
  std::optional<Answer> found;
  const size_t in_delta = delta.text.rfind('\n');
  if (in_delta == std::string_view::npos || state_->tool) return found;
  const size_t whole = state_->text.size() - delta.text.size() + in_delta;
  std::string_view rest = std::string_view(state_->text).substr(0, whole + 1);
  rest.remove_prefix(state_->read);
  state_->read = whole + 1;
  while (!rest.empty()) {
    if (!state_->scanner.take(next_line(rest))) {
      const Segment* open = state_->scanner.open();
      state_->tool = open != nullptr && asks_for_tool(*open, state_->contract);
      if (state_->tool) return std::nullopt;
      continue;
    }
    const Segment& block = state_->scanner.last();
    const std::optional<AnswerForm> form = form_of(block, state_->contract);
    if (form != AnswerForm::source && form != AnswerForm::plan) continue;
    AnswerResult answer = form == AnswerForm::plan
                              ? accept_plan(block.text)
                              : accept_source(AnswerForm::source, block.text, state_->contract);
    if (!answer) continue;
    answer->note = first_prose_line(state_->scanner.segments(), kNoteBytesMax);
    found = std::move(*answer);
  }
  return found;
}

AnswerResult AnswerStream::finish(FinishReason reason) const {
  return parse_answer(state_->text, reason, state_->contract);
}

}  // namespace ke::llm
