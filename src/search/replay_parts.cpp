// SPDX-License-Identifier: Apache-2.0
#include "search/replay_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "llm/exchange.hpp"
#include "propose/model/tasks.hpp"

namespace ke::replay_parts {
namespace {

int64_t first_different_line(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  const auto at = std::mismatch(a.begin(), a.begin() + static_cast<int64_t>(most), b.begin()).first;
  return 1 + std::count(a.begin(), at, '\n');
}

std::string ids_text(const std::vector<NodeId>& ids) {
  std::string text;
  for (const NodeId id : ids) text += fmt::format("{}{}", text.empty() ? "" : ", ", id.value);
  return text.empty() ? "none" : text;
}

Result<ModelEvent> read(const AnswerRow& answer, const PromptRow& prompt) {
  const Json json = TRY(parse_json(answer.outcome));
  return ModelEvent{prompt.id, answer.early, TRY(llm::decode_outcome(json, prompt.model)),
                    json.value("usd", 0.0)};
}

}  // namespace

// --- Cursor -------------------------------------------------------------------------------------

Cursor::Cursor(const Recording& recording) : recording_(recording) {
  for (const JournalRow& row : recording.journal) {
    const bool confirms = row.kind == JournalKind::evaluation &&
                          recording.evaluations.at({row.row}).effort != enum_name(Effort::screen);
    if (!confirms) journal_.push_back(row);
  }
  if (journal_.empty()) end_.request_stop();
}

const JournalRow* Cursor::next() const { return at_ < journal_.size() ? &journal_[at_] : nullptr; }

void Cursor::advance() {
  ++at_;
  if (at_end()) end_.request_stop();
}

const NodeRow* Cursor::node() const {
  const bool is = next() && next()->kind == JournalKind::node;
  return is ? &recording_.nodes.at({next()->row}) : nullptr;
}

const PromptRow* Cursor::prompt() const {
  const bool is = next() && next()->kind == JournalKind::prompt;
  return is ? &recording_.prompts.at({next()->row}) : nullptr;
}

const AnswerRow* Cursor::answer() const {
  const bool is = next() && next()->kind == JournalKind::answer;
  return is ? &recording_.answers.at({next()->row}) : nullptr;
}

const RecordedEvaluation* Cursor::evaluation() const {
  const bool is = next() && next()->kind == JournalKind::evaluation;
  return is ? &recording_.evaluations.at({next()->row}) : nullptr;
}

std::string Cursor::place() const {
  if (!next()) return "the recording has ended";
  std::string text = fmt::format("row {} of {} is {} {}", at_ + 1, journal_.size(),
                                 enum_name(next()->kind), next()->row);
  if (const NodeRow* row = node()) return text + fmt::format(" ({})", row->proposer);
  if (const PromptRow* row = prompt()) {
    return text + fmt::format(" ({}, {})", row->style, row->model);
  }
  if (const AnswerRow* row = answer()) {
    return text + fmt::format(" (to prompt {})", row->prompt.value);
  }
  return text + fmt::format(" (of node {})", evaluation()->node.value);
}

Error Cursor::stuck() const {
  return Error{Errc::conflict,
               fmt::format("the replay does not get further: {}, and nothing leads there",
                           place())};
}

// --- ComparingStore -----------------------------------------------------------------------------

Result<RunId> ComparingStore::insert(const RunRow& row) {
  RunRow recorded = row;
  recorded.id = cursor_.recording().run.id;
  return rows_->insert(recorded);
}

Result<void> ComparingStore::compare(const NodeRow& row) const {
  const NodeRow* recorded = cursor_.node();
  std::string what;
  if (!recorded) {
    what = fmt::format("the replay makes a node by {} there", row.proposer);
  } else if (row.proposer != recorded->proposer || row.prompt != recorded->prompt) {
    what = fmt::format("the replay's is by {}", row.proposer);
    if (row.prompt) what += fmt::format(", from prompt {}", row.prompt.value);
  } else if (row.source_digest != recorded->source_digest) {
    what = fmt::format("the replay's source differs from line {} on",
                       first_different_line(row.source, recorded->source));
  } else if (row.kind != recorded->kind || row.memory != recorded->memory ||
             (row.parents != recorded->parents && row.kind != NodeKind::seed)) {
    what = fmt::format("the replay's is a {} of {}", enum_name(row.kind), ids_text(row.parents));
  }
  if (what.empty()) return {};
  return Error{Errc::conflict, fmt::format("{}; {}", cursor_.place(), what)};
}

Result<void> ComparingStore::compare(const PromptRow& row) const {
  const PromptRow* recorded = cursor_.prompt();
  std::string what;
  if (!recorded) {
    what = fmt::format("the replay asks {} ({}) there", row.model, row.style);
  } else if (row.model != recorded->model || row.style != recorded->style) {
    what = fmt::format("the replay asks {} ({})", row.model, row.style);
  } else if (row.kind != recorded->kind || row.parents != recorded->parents) {
    what = fmt::format("the replay asks for a {} of {}", enum_name(row.kind),
                       ids_text(row.parents));
  } else if (row.digest != recorded->digest) {
    const auto now = TRY(llm::decode_request(TRY(parse_json(row.request)), row.stable));
    const auto then = TRY(llm::decode_request(TRY(parse_json(recorded->request)), {}));
    what = fmt::format("the replay's prompt {} is not the recorded {}: {}",
                       row.digest.short_hex(), recorded->digest.short_hex(),
                       llm::difference(now, recorded->stable_digest, then.messages));
  }
  if (what.empty()) return {};
  return Error{Errc::conflict, fmt::format("{}; {}", cursor_.place(), what)};
}

Result<void> ComparingStore::compare(const AnswerRow& row) const {
  const AnswerRow* recorded = cursor_.answer();
  if (recorded && recorded->prompt == row.prompt && recorded->fault == row.fault) return {};
  const bool proposes = agent_of(cursor_.recording().prompts.at(row.prompt).style) ==
                        Agent::proposal;
  const auto told = [proposes](const std::string& fault) {
    if (!fault.empty()) return fmt::format("'{}'", fault);
    return std::string(proposes ? "a kernel" : "advice");
  };
  return Error{Errc::conflict,
               fmt::format("{}; the replay reads {} out of the answer to prompt {}, not {}",
                           cursor_.place(), told(row.fault), row.prompt.value,
                           recorded ? told(recorded->fault) : "nothing")};
}

Result<NodeId> ComparingStore::insert(const NodeRow& row, std::span<const StatisticRow> changes) {
  TRY(compare(row));
  NodeRow recorded = row;
  recorded.id = {cursor_.next()->row};
  const NodeId id = TRY(rows_->insert(recorded, changes));
  cursor_.advance();
  return id;
}

Result<EvaluationId> ComparingStore::insert(const EvaluationRow& row,
                                            std::span<const StatisticRow> changes) {
  const RecordedEvaluation* recorded = cursor_.evaluation();
  if (!recorded || recorded->node != row.node) {
    return Error{Errc::conflict, fmt::format("{}; the replay has node {} judged there",
                                             cursor_.place(), row.node.value)};
  }
  const EvaluationId id = TRY(rows_->insert(row, changes));
  cursor_.advance();
  return id;
}

Result<int64_t> ComparingStore::insert(const std::variant<PromptRow, AnswerRow>& row) {
  auto recorded = row;
  TRY(std::visit([this](const auto& one) { return compare(one); }, row));
  std::visit([this](auto& one) { one.id = {cursor_.next()->row}; }, recorded);
  const int64_t id = TRY(rows_->insert(recorded));
  cursor_.advance();
  return id;
}

// --- The rest -----------------------------------------------------------------------------------

bool RecordedModels::available(int model) const {
  const PromptRow* prompt = cursor_.prompt();
  return prompt && prompt->model == models_[static_cast<size_t>(model)].name;
}

std::optional<ModelEvent> RecordedModels::poll() {
  const AnswerRow* answer = cursor_.answer();
  if (!answer || broken_) return std::nullopt;
  const PromptRow& prompt = cursor_.recording().prompts.at(answer->prompt);
  Result<ModelEvent> event = read(*answer, prompt);
  if (event) return std::move(*event);
  broken_ = event.error();
  return std::nullopt;
}

// Whatever could go on has: nothing is waited for in a replay.
Result<void> RecordedModels::wait(Milliseconds) { return broken_ ? *broken_ : cursor_.stuck(); }

Result<Json> RecordedGround::ground_with(const char* key) const {
  const PromptRow* prompt = cursor_.prompt();
  if (!prompt || prompt->ground.empty()) return Json();
  Json ground = TRY(parse_json(prompt->ground));
  return ground.contains(key) ? std::move(ground) : Json();
}

Result<PromptGround> RecordedGround::ground() const {
  const Json json = TRY(ground_with("documents"));
  return json.is_null() ? PromptGround() : decode_prompt_ground(json);
}

Result<std::optional<KernelProfile>> RecordedGround::profile(const NodeRow&) {
  return TRY(ground()).profile;
}

Result<std::vector<PromptDocument>> RecordedGround::documents(const ProposalContext&,
                                                              const Diagnosis&, int64_t) {
  return TRY(ground()).documents;
}

Result<std::vector<IndexEntry>> RecordedGround::index(const ProposalContext&, const Diagnosis&) {
  return TRY(ground()).shown;
}

Result<Found> RecordedGround::look_up(const llm::ToolCall& search) {
  const Json json = TRY(ground_with("found"));
  std::vector<Found> found;
  if (!json.is_null()) found = TRY(decode_found(json));
  const auto same = std::ranges::find(found, search, &Found::search);
  return same == found.end() ? Found{search, {}, {}} : *same;
}

Result<std::optional<PromptDocument>> RecordedGround::read(const std::string& path) {
  const std::vector<PromptDocument> documents = TRY(ground()).documents;
  const auto found = std::ranges::find(documents, path, &PromptDocument::path);
  if (found == documents.end()) return std::optional<PromptDocument>();
  return std::optional<PromptDocument>(*found);
}

Result<std::string> RecordedGround::use(const llm::ToolCall&) {
  const Json json = TRY(ground_with("tool"));
  return json.is_null() ? std::string() : TRY(decode_tool_use(json)).result;
}

PromptId RecordedPace::followed() const {
  const PromptRow* prompt = cursor_.prompt();
  return prompt ? prompt->follows : PromptId();
}

bool RecordedPace::allows(JournalKind next, bool special) const {
  if (!cursor_.next() || cursor_.next()->kind != next) return false;
  switch (next) {
    case JournalKind::node:
      return static_cast<bool>(cursor_.node()->prompt) == special;
    case JournalKind::prompt:
      return static_cast<bool>(cursor_.prompt()->follows) == special;
    case JournalKind::evaluation:
    case JournalKind::answer:
      return true;
  }
  return false;
}

std::vector<NodeId> RecordedPace::spent_by(int64_t step) const {
  std::vector<NodeId> nodes;
  for (const StatisticRow& row : cursor_.recording().spent) {
    if (row.step <= step) nodes.push_back(row.node);
  }
  return nodes;
}

RecordedEvaluator::RecordedEvaluator(const Recording& recording) {
  for (const auto& [id, row] : recording.evaluations) {
    if (row.effort != enum_name(Effort::screen)) continue;
    by_source_.emplace(recording.nodes.at(row.node).source, &row.evaluation);
  }
}

Result<Artifact> RecordedEvaluator::build(const std::string& source) {
  const auto found = by_source_.find(source);
  Artifact artifact{.built_path = source, .failure = {}};
  if (found != by_source_.end()) artifact.build_ms = found->second->build_ms;
  return artifact;
}

Result<Evaluation> RecordedEvaluator::judge(const Artifact& artifact, const JudgeOptions&) {
  const auto found = by_source_.find(artifact.built_path);
  if (found != by_source_.end()) return *found->second;
  return Error{Errc::conflict, "the recording holds no verdict of this kernel"};
}

}  // namespace ke::replay_parts
