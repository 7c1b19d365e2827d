// SPDX-License-Identifier: Apache-2.0
//
// Where the experience graph lives: insert-only rows. Every insert is one atomic checkpoint: when
// it returns, the rows survive the death of this process at any later moment.
//
// Threads: one call at a time per object. Several processes may open one file; a writer that waits
// longer than the busy timeout gets Errc::conflict.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "domain/experience.hpp"

namespace ke {

// Conditions are joined by "and"; unset ones do not restrict. Rows come in order of their ids.
struct RunQuery {
  std::optional<RunId> id;
  std::optional<ProblemId> problem;
};

struct NodeQuery {
  std::optional<NodeId> id;
  std::optional<RunId> run;
  std::optional<NodeId> child_of;
  std::optional<Scope> scope;
  std::optional<Digest> normalised_digest;
  bool with_source = true;  // false leaves source and plan empty
  NodeId after;             // ids greater than this, for paging
  int64_t limit = 0;        // 0: all
};

struct EvaluationQuery {
  enum class Order : uint8_t { by_id, best_first };  // best_first: accepted ones by fitness
  std::optional<NodeId> node;
  std::optional<RunId> run;
  std::optional<Scope> scope;
  Order order = Order::by_id;
  int64_t limit = 0;  // 0: all
};

struct StatisticQuery {
  RunId run;
  std::optional<NodeId> node;
  std::optional<int64_t> as_of_step;  // rows of later steps are not seen
};

struct ExchangeQuery {
  std::optional<RunId> run;
  std::optional<PromptId> prompt;
};

class StoreReader {
 public:
  virtual ~StoreReader() = default;
  virtual Result<std::vector<ProblemRow>> problems() const = 0;
  virtual Result<std::vector<RunRow>> runs(const RunQuery& query) const = 0;
  virtual Result<std::vector<NodeRow>> nodes(const NodeQuery& query) const = 0;
  virtual Result<std::vector<EvaluationRow>> evaluations(const EvaluationQuery& query) const = 0;
  // The whole log in the order of insertion; the last row of a (node, name) is its value.
  virtual Result<std::vector<StatisticRow>> statistics(const StatisticQuery& query) const = 0;
  // Prompts in the order of their ids, with their answers.
  virtual Result<std::vector<ExchangeRow>> exchanges(const ExchangeQuery& query) const = 0;
  // Everything of the run but its statistics, in the order of insertion. Rows that a version
  // without journal wrote are missing.
  virtual Result<std::vector<JournalRow>> journal(RunId run) const = 0;
};

class Store : public StoreReader {
 public:
  // The id of the row with this name and digest, inserted when it is not there.
  virtual Result<ProblemId> insert(const ProblemRow& row) = 0;
  virtual Result<RunId> insert(const RunRow& row) = 0;
  virtual Result<void> insert(const RunEndRow& row) = 0;
  // With the statistics that change by it; a change whose node is 0 is about the inserted node.
  // Errc::conflict when the run has a node of that step already, or a row that it names is missing.
  virtual Result<NodeId> insert(const NodeRow& row, std::span<const StatisticRow> changes) = 0;
  virtual Result<EvaluationId> insert(const EvaluationRow& row,
                                      std::span<const StatisticRow> changes) = 0;
  virtual Result<void> insert(RunId run, std::span<const StatisticRow> changes) = 0;
  // The id of the new prompt or answer.
  virtual Result<int64_t> insert(const std::variant<PromptRow, AnswerRow>& row) = 0;
};

enum class StoreMode : uint8_t { read_write, read_only };

// Opens the database file (created when missing and writable) and brings its schema up to date.
// Errors, each one sentence: Errc::conflict when another process holds it or a newer version wrote
// it, Errc::refused when it cannot be written, Errc::invalid when it is damaged or not ours,
// Errc::unavailable when the disk is full, Errc::not_found when read_only finds no file.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& file,
                                                 StoreMode mode = StoreMode::read_write,
                                                 Milliseconds busy_timeout = Milliseconds{5'000});

// Forgets everything when it is destroyed: for tests and replays. A node, prompt or answer whose id
// is set, and greater than all before, keeps it: a replay knows rows by their recorded ids.
std::unique_ptr<Store> make_memory_store();

}  // namespace ke
