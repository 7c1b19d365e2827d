// SPDX-License-Identifier: Apache-2.0
//
// What a replay puts in the place of the world: a cursor in the recorded journal, and around it a
// store that compares, models that answer as recorded, and an evaluator that knows the verdicts.
#pragma once

#include <map>
#include <stop_token>

#include "base/json_fwd.hpp"
#include "eval/evaluator.hpp"
#include "graph/recording.hpp"
#include "propose/model/ground.hpp"
#include "propose/model/models.hpp"
#include "store/store.hpp"

namespace ke::replay_parts {

class Cursor {
 public:
  explicit Cursor(const Recording& recording);

  const Recording& recording() const { return recording_; }
  // The next row that the run inserted; null at the end. Confirmations are passed over.
  const JournalRow* next() const;
  void advance();
  bool at_end() const { return next() == nullptr; }
  std::stop_token end_token() const { return end_.get_token(); }

  // "row 12 of 40 is prompt 5 (llm, openai:NAME)", for sentences.
  std::string place() const;
  // The engine has nothing more to do, but the recording goes on.
  Error stuck() const;

  // Only when next() is of that kind.
  const NodeRow* node() const;
  const PromptRow* prompt() const;
  const AnswerRow* answer() const;
  const RecordedEvaluation* evaluation() const;

 private:
  const Recording& recording_;
  std::vector<JournalRow> journal_;
  size_t at_ = 0;
  std::stop_source end_;
};

// A row that differs from the recorded one is Errc::conflict.
class ComparingStore final : public Store {
 public:
  explicit ComparingStore(Cursor& cursor) : cursor_(cursor), rows_(make_memory_store()) {}

  Result<std::vector<ProblemRow>> problems() const override { return rows_->problems(); }
  Result<std::vector<RunRow>> runs(const RunQuery& q) const override { return rows_->runs(q); }
  Result<std::vector<NodeRow>> nodes(const NodeQuery& q) const override { return rows_->nodes(q); }
  Result<std::vector<EvaluationRow>> evaluations(const EvaluationQuery& q) const override {
    return rows_->evaluations(q);
  }
  Result<std::vector<StatisticRow>> statistics(const StatisticQuery& q) const override {
    return rows_->statistics(q);
  }
  Result<std::vector<ExchangeRow>> exchanges(const ExchangeQuery& q) const override {
    return rows_->exchanges(q);
  }
  Result<std::vector<JournalRow>> journal(RunId run) const override { return rows_->journal(run); }

  Result<ProblemId> insert(const ProblemRow& row) override { return rows_->insert(row); }
  Result<RunId> insert(const RunRow& row) override;
  Result<void> insert(const RunEndRow& row) override { return rows_->insert(row); }
  Result<NodeId> insert(const NodeRow& row, std::span<const StatisticRow> changes) override;
  Result<EvaluationId> insert(const EvaluationRow& row,
                              std::span<const StatisticRow> changes) override;
  Result<void> insert(RunId run, std::span<const StatisticRow> changes) override {
    return rows_->insert(run, changes);
  }
  Result<int64_t> insert(const std::variant<PromptRow, AnswerRow>& row) override;

 private:
  Result<void> compare(const NodeRow& row) const;
  Result<void> compare(const PromptRow& row) const;
  Result<void> compare(const AnswerRow& row) const;

  Cursor& cursor_;
  std::unique_ptr<Store> rows_;
};

class RecordedModels final : public Models {
 public:
  RecordedModels(const Cursor& cursor, std::vector<ModelInfo> models)
      : cursor_(cursor), models_(std::move(models)) {}

  std::vector<ModelInfo> list() const override { return models_; }
  bool available(int model) const override;
  void ask(PromptId, int, const llm::CompletionRequest&, const llm::AnswerContract&) override {}
  std::optional<ModelEvent> poll() override;
  Result<void> wait(Milliseconds most) override;
  void drain(EventSink&) override {}
  void end() override {}

 private:
  const Cursor& cursor_;
  std::vector<ModelInfo> models_;
  std::optional<Error> broken_;  // an answer that cannot be read
};

// What the recorded prompt at the cursor drew on. Prompts that are not there are made of nothing,
// and differ when they are compared.
class RecordedGround final : public GroundSource {
 public:
  explicit RecordedGround(const Cursor& cursor) : cursor_(cursor) {}
  Result<std::optional<KernelProfile>> profile(const NodeRow& node) override;
  Result<std::vector<PromptDocument>> documents(const ProposalContext& context,
                                                const Diagnosis& diagnosis,
                                                int64_t tokens_max) override;
  Result<std::vector<IndexEntry>> index(const ProposalContext& context,
                                        const Diagnosis& diagnosis) override;
  Result<Found> look_up(const llm::ToolCall& search) override;
  Result<std::optional<PromptDocument>> read(const std::string& path) override;
  Result<std::string> use(const llm::ToolCall& call) override;

 private:
  // Of the prompt at the cursor, when it has one of the form that begins with this key; else null.
  Result<Json> ground_with(const char* key) const;
  Result<PromptGround> ground() const;
  const Cursor& cursor_;
};

class RecordedPace final : public Pace {
 public:
  explicit RecordedPace(const Cursor& cursor) : cursor_(cursor) {}
  bool allows(JournalKind next, bool special) const override;
  PromptId followed() const override;
  std::vector<NodeId> spent_by(int64_t step) const override;

 private:
  const Cursor& cursor_;
};

class RecordedEvaluator final : public Evaluator {
 public:
  explicit RecordedEvaluator(const Recording& recording);
  Result<Artifact> build(const std::string& source) override;
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override;
  Result<std::vector<std::string>> admission_flags() override { return std::vector<std::string>(); }
  int64_t floor_ns() const override { return 0; }

 private:
  std::map<std::string, const Evaluation*> by_source_;
};

}  // namespace ke::replay_parts
