// SPDX-License-Identifier: Apache-2.0
//
// The experience graph in one SQLite file, in WAL mode: readers never wait, one writer at a time,
// and a commit that returned survives the death of the process.
#include <fmt/format.h>

#include <sstream>
#include <system_error>

#include "base/assert.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/store.hpp"

namespace ke {
namespace {

// quick_check reads the whole file; beyond this size opening would take seconds.
constexpr uintmax_t kCheckedBytesMax = 64u << 20;

constexpr std::string_view kSelectProblems = "SELECT id, name, path, digest FROM problems";
constexpr std::string_view kFindProblem = "SELECT id FROM problems WHERE name = ? AND digest = ?";
constexpr std::string_view kInsertProblem =
    "INSERT INTO problems (name, path, digest) VALUES (?, ?, ?)";
constexpr std::string_view kFindScope =
    "SELECT id FROM scopes WHERE problem = ? AND target = ? AND toolchain = ?";
constexpr std::string_view kInsertScope =
    "INSERT INTO scopes (problem, target, toolchain) VALUES (?, ?, ?)";
constexpr std::string_view kSelectRuns =
    "SELECT r.id, s.problem, s.target, s.toolchain, r.config, r.seed, r.started_utc_ms,"
    " e.ended_utc_ms, e.reason, t.text FROM runs r JOIN scopes s ON s.id = r.scope"
    " LEFT JOIN texts t ON t.digest = r.description"
    " LEFT JOIN run_ends e ON e.id = (SELECT max(id) FROM run_ends WHERE run = r.id)";
constexpr std::string_view kInsertRun =
    "INSERT INTO runs (scope, config, seed, started_utc_ms, description) VALUES (?, ?, ?, ?, ?)";
constexpr std::string_view kInsertRunEnd =
    "INSERT INTO run_ends (run, ended_utc_ms, reason) VALUES (?, ?, ?)";
constexpr std::string_view kNodeColumns =
    "SELECT n.id, n.run, n.step, n.kind, n.memory, n.proposer, n.note, n.source_digest,"
    " n.normalised_digest, n.prompt";
constexpr std::string_view kInsertNode =
    "INSERT INTO nodes (run, scope, step, kind, memory, proposer, note, source_digest,"
    " normalised_digest, source, plan, prompt) VALUES (?1, (SELECT scope FROM runs WHERE id = ?1),"
    " ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, nullif(?11, 0))";
constexpr std::string_view kInsertEdge =
    "INSERT INTO edges (child, position, parent) VALUES (?, ?, ?)";
constexpr std::string_view kSelectParents =
    "SELECT parent FROM edges WHERE child = ? ORDER BY position";
constexpr std::string_view kFindRunOfNode = "SELECT run FROM nodes WHERE id = ?";
constexpr std::string_view kSelectEvaluations =
    "SELECT e.id, e.node, e.evaluation, e.effort, e.confirmed, e.reused_from, e.verdict, e.fitness"
    " FROM evaluations e";
constexpr std::string_view kInsertEvaluation =
    "INSERT INTO evaluations (node, run, scope, effort, confirmed, reused_from, verdict, fitness,"
    " evaluation) SELECT id, run, scope, ?2, ?3, nullif(?4, 0), ?5, ?6, ?7 FROM nodes WHERE id = "
    "?1";
constexpr std::string_view kSelectStatistics = "SELECT step, node, name, value FROM statistics";
constexpr std::string_view kKeepText = "INSERT OR IGNORE INTO texts (digest, text) VALUES (?, ?)";
constexpr std::string_view kSelectPrompts =
    "SELECT p.id, p.run, p.step, p.consumed, p.follows, p.style, p.model, p.kind, p.memory,"
    " p.parents, p.digest, p.stable, t.text, p.request, p.ground FROM prompts p"
    " JOIN texts t ON t.digest = p.stable";
constexpr std::string_view kInsertPrompt =
    "INSERT INTO prompts (run, step, consumed, follows, style, model, kind, memory, parents,"
    " digest, stable, request, ground)"
    " VALUES (?, ?, ?, nullif(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?)";
constexpr std::string_view kSelectAnswers =
    "SELECT id, consumed, early, outcome, fault FROM answers WHERE prompt = ? ORDER BY id";
constexpr std::string_view kInsertAnswer =
    "INSERT INTO answers (prompt, consumed, early, outcome, fault) VALUES (?, ?, ?, ?, ?)";
constexpr std::string_view kSelectJournal =
    "SELECT kind, row FROM journal WHERE run = ? ORDER BY id";
constexpr std::string_view kInsertStatistic =
    "INSERT INTO statistics (run, step, node, name, value) VALUES (?, ?, ?, ?, ?)";

// Conditions joined by AND, with their values bound in the order in which they were added.
class Conditions {
 public:
  Conditions& where(std::string_view condition, int64_t value) {
    add(condition);
    values_.push_back({.integer = value});
    return *this;
  }
  Conditions& where(std::string_view condition, const Digest& digest) {
    add(condition);
    values_.push_back({.digest = digest});
    return *this;
  }
  Conditions& where(std::string_view condition) {
    add(condition);
    return *this;
  }

  Result<Statement> prepare(Database& database, std::string_view select,
                            std::string_view tail) const {
    Statement statement = TRY(database.prepare(fmt::format("{}{} {}", select, text_, tail)));
    for (const Value& value : values_) {
      value.digest ? statement.bind(*value.digest) : statement.bind(value.integer);
    }
    return statement;
  }

 private:
  struct Value {
    int64_t integer = 0;
    std::optional<Digest> digest = {};
  };
  void add(std::string_view condition) {
    text_ += fmt::format(" {} {}", text_.empty() ? "WHERE" : "AND", condition);
  }
  std::string text_;
  std::vector<Value> values_;
};

std::string limit_of(int64_t limit) { return limit > 0 ? fmt::format(" LIMIT {}", limit) : ""; }

template <class E>
Result<E> enum_of(const Statement& row, int column) {
  const std::string text = row.text(column);
  if (const std::optional<E> value = parse_enum<E>(text)) return *value;
  return Error{Errc::invalid, fmt::format("the experience database holds an unknown '{}'", text)};
}

// Ids as "3 14".
std::string print_ids(const std::vector<NodeId>& ids) {
  std::string text;
  for (const NodeId id : ids) text += fmt::format("{}{}", text.empty() ? "" : " ", id.value);
  return text;
}

std::vector<NodeId> parse_ids(const std::string& text) {
  std::vector<NodeId> ids;
  std::istringstream in(text);
  for (int64_t id = 0; in >> id;) ids.push_back({id});
  return ids;
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  Result<std::vector<ProblemRow>> problems() const override;
  Result<std::vector<RunRow>> runs(const RunQuery& query) const override;
  Result<std::vector<NodeRow>> nodes(const NodeQuery& query) const override;
  Result<std::vector<EvaluationRow>> evaluations(const EvaluationQuery& query) const override;
  Result<std::vector<StatisticRow>> statistics(const StatisticQuery& query) const override;
  Result<std::vector<ExchangeRow>> exchanges(const ExchangeQuery& query) const override;
  Result<std::vector<JournalRow>> journal(RunId run) const override;

  Result<ProblemId> insert(const ProblemRow& row) override;
  Result<RunId> insert(const RunRow& row) override;
  Result<void> insert(const RunEndRow& row) override;
  Result<NodeId> insert(const NodeRow& row, std::span<const StatisticRow> changes) override;
  Result<EvaluationId> insert(const EvaluationRow& row,
                              std::span<const StatisticRow> changes) override;
  Result<void> insert(RunId run, std::span<const StatisticRow> changes) override;
  Result<int64_t> insert(const std::variant<PromptRow, AnswerRow>& row) override;

 private:
  // The scope's row, 0 when there is none.
  Result<int64_t> find_scope(const Scope& scope) const;
  Result<void> keep_text(const Digest& digest, std::string_view text);
  Result<void> append(RunId run, NodeId unnamed, std::span<const StatisticRow> changes);

  std::unique_ptr<Database> database_;
};

// --- Reading ------------------------------------------------------------------------------------

Result<std::vector<ProblemRow>> SqliteStore::problems() const {
  std::vector<ProblemRow> rows;
  Statement row = TRY(database_->prepare(kSelectProblems));
  while (TRY(row.step())) {
    rows.push_back({.id = {row.integer(0)},
                    .name = row.text(1),
                    .path = row.text(2),
                    .digest = TRY(row.digest(3))});
  }
  return rows;
}

Result<std::vector<RunRow>> SqliteStore::runs(const RunQuery& query) const {
  Conditions conditions;
  if (query.id) conditions.where("r.id = ?", query.id->value);
  if (query.problem) conditions.where("s.problem = ?", query.problem->value);
  Statement row = TRY(conditions.prepare(*database_, kSelectRuns, "ORDER BY r.id"));
  std::vector<RunRow> rows;
  while (TRY(row.step())) {
    RunRow run{.id = {row.integer(0)},
               .scope = {{row.integer(1)}, row.text(2), row.text(3)},
               .config = row.text(4),
               .description = row.text(9),
               .seed = static_cast<uint64_t>(row.integer(5)),
               .started_utc_ms = row.integer(6),
               .ended_utc_ms = {},
               .end_reason = row.text(8)};
    if (!row.is_null(7)) run.ended_utc_ms = row.integer(7);
    rows.push_back(std::move(run));
  }
  return rows;
}

Result<std::vector<NodeRow>> SqliteStore::nodes(const NodeQuery& query) const {
  Conditions conditions;
  if (query.id) conditions.where("n.id = ?", query.id->value);
  if (query.run) conditions.where("n.run = ?", query.run->value);
  if (query.child_of) {
    conditions.where("n.id IN (SELECT child FROM edges WHERE parent = ?)", query.child_of->value);
  }
  if (query.scope) conditions.where("n.scope = ?", TRY(find_scope(*query.scope)));
  if (query.normalised_digest) {
    conditions.where("n.normalised_digest = ?", *query.normalised_digest);
  }
  if (query.after) conditions.where("n.id > ?", query.after.value);
  const std::string select = fmt::format("{}{} FROM nodes n", kNodeColumns,
                                         query.with_source ? ", n.source, n.plan" : ", '', ''");
  Statement row =
      TRY(conditions.prepare(*database_, select, "ORDER BY n.id" + limit_of(query.limit)));
  std::vector<NodeRow> rows;
  while (TRY(row.step())) {
    NodeRow node{.id = {row.integer(0)},
                 .run = {row.integer(1)},
                 .step = row.integer(2),
                 .kind = TRY(enum_of<NodeKind>(row, 3)),
                 .memory = TRY(enum_of<Memory>(row, 4)),
                 .parents = {},
                 .proposer = row.text(5),
                 .source = row.text(10),
                 .source_digest = TRY(row.digest(7)),
                 .normalised_digest = TRY(row.digest(8)),
                 .plan = row.text(11),
                 .note = row.text(6),
                 .prompt = {row.integer(9)}};
    Statement parent = TRY(database_->prepare(kSelectParents));
    parent.bind(node.id.value);
    while (TRY(parent.step())) node.parents.push_back({parent.integer(0)});
    rows.push_back(std::move(node));
  }
  return rows;
}

Result<std::vector<EvaluationRow>> SqliteStore::evaluations(const EvaluationQuery& query) const {
  Conditions conditions;
  if (query.node) conditions.where("e.node = ?", query.node->value);
  if (query.run) conditions.where("e.run = ?", query.run->value);
  if (query.scope) conditions.where("e.scope = ?", TRY(find_scope(*query.scope)));
  const bool best_first = query.order == EvaluationQuery::Order::best_first;
  if (best_first) conditions.where("e.fitness IS NOT NULL");
  const std::string tail =
      (best_first ? "ORDER BY e.fitness DESC, e.id" : "ORDER BY e.id") + limit_of(query.limit);
  Statement row = TRY(conditions.prepare(*database_, kSelectEvaluations, tail));
  std::vector<EvaluationRow> rows;
  while (TRY(row.step())) {
    EvaluationRow evaluation{.id = {row.integer(0)},
                             .node = {row.integer(1)},
                             .evaluation = row.text(2),
                             .effort = row.text(3),
                             .confirmed = row.integer(4) != 0,
                             .reused_from = {row.integer(5)},
                             .verdict = TRY(enum_of<Verdict>(row, 6)),
                             .fitness = {}};
    if (!row.is_null(7)) evaluation.fitness = row.real(7);
    rows.push_back(std::move(evaluation));
  }
  return rows;
}

Result<std::vector<StatisticRow>> SqliteStore::statistics(const StatisticQuery& query) const {
  Conditions conditions;
  conditions.where("run = ?", query.run.value);
  if (query.node) conditions.where("node = ?", query.node->value);
  if (query.as_of_step) conditions.where("step <= ?", *query.as_of_step);
  Statement row = TRY(conditions.prepare(*database_, kSelectStatistics, "ORDER BY id"));
  std::vector<StatisticRow> rows;
  while (TRY(row.step())) {
    rows.push_back({.step = row.integer(0),
                    .node = {row.integer(1)},
                    .name = row.text(2),
                    .value = row.real(3)});
  }
  return rows;
}

Result<std::vector<ExchangeRow>> SqliteStore::exchanges(const ExchangeQuery& query) const {
  Conditions conditions;
  if (query.run) conditions.where("p.run = ?", query.run->value);
  if (query.prompt) conditions.where("p.id = ?", query.prompt->value);
  Statement row = TRY(conditions.prepare(*database_, kSelectPrompts, "ORDER BY p.id"));
  std::vector<ExchangeRow> rows;
  while (TRY(row.step())) {
    PromptRow prompt{.id = {row.integer(0)},
                     .run = {row.integer(1)},
                     .step = row.integer(2),
                     .consumed = row.integer(3),
                     .follows = {row.integer(4)},
                     .style = row.text(5),
                     .model = row.text(6),
                     .kind = TRY(enum_of<NodeKind>(row, 7)),
                     .memory = TRY(enum_of<Memory>(row, 8)),
                     .parents = parse_ids(row.text(9)),
                     .digest = TRY(row.digest(10)),
                     .stable_digest = TRY(row.digest(11)),
                     .stable = row.text(12),
                     .request = row.text(13),
                     .ground = row.text(14)};
    Statement answer = TRY(database_->prepare(kSelectAnswers));
    answer.bind(prompt.id.value);
    rows.push_back({std::move(prompt), {}});
    ExchangeRow& exchange = rows.back();
    while (TRY(answer.step())) {
      exchange.answers.push_back({.id = {answer.integer(0)},
                                  .prompt = exchange.prompt.id,
                                  .consumed = answer.integer(1),
                                  .early = answer.integer(2) != 0,
                                  .outcome = answer.text(3),
                                  .fault = answer.text(4)});
    }
  }
  return rows;
}

Result<std::vector<JournalRow>> SqliteStore::journal(RunId run) const {
  Statement row = TRY(database_->prepare(kSelectJournal));
  row.bind(run.value);
  std::vector<JournalRow> rows;
  while (TRY(row.step())) rows.push_back({TRY(enum_of<JournalKind>(row, 0)), row.integer(1)});
  return rows;
}

Result<int64_t> SqliteStore::find_scope(const Scope& scope) const {
  Statement find = TRY(database_->prepare(kFindScope));
  find.bind(scope.problem.value).bind(scope.target).bind(scope.toolchain);
  return TRY(find.step()) ? find.integer(0) : 0;
}

// --- Inserting ----------------------------------------------------------------------------------

Result<ProblemId> SqliteStore::insert(const ProblemRow& row) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  ProblemId id;
  {
    Statement find = TRY(database_->prepare(kFindProblem));
    find.bind(row.name).bind(row.digest);
    if (TRY(find.step())) id.value = find.integer(0);
  }
  if (!id) {
    TRY(TRY(database_->prepare(kInsertProblem))
            .bind(row.name)
            .bind(row.path)
            .bind(row.digest)
            .run());
    id.value = database_->last_id();
  }
  TRY(transaction.commit());
  return id;
}

Result<RunId> SqliteStore::insert(const RunRow& row) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  int64_t scope = TRY(find_scope(row.scope));
  if (scope == 0) {
    TRY(TRY(database_->prepare(kInsertScope))
            .bind(row.scope.problem.value)
            .bind(row.scope.target)
            .bind(row.scope.toolchain)
            .run());
    scope = database_->last_id();
  }
  const Digest description = digest_of(row.description);
  TRY(keep_text(description, row.description));
  TRY(TRY(database_->prepare(kInsertRun))
          .bind(scope)
          .bind(row.config)
          .bind(static_cast<int64_t>(row.seed))
          .bind(row.started_utc_ms)
          .bind(description)
          .run());
  const RunId id{database_->last_id()};
  TRY(transaction.commit());
  return id;
}

Result<void> SqliteStore::insert(const RunEndRow& row) {
  return TRY(database_->prepare(kInsertRunEnd))
      .bind(row.run.value)
      .bind(row.ended_utc_ms)
      .bind(row.reason)
      .run();
}

Result<NodeId> SqliteStore::insert(const NodeRow& row, std::span<const StatisticRow> changes) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  TRY(TRY(database_->prepare(kInsertNode))
          .bind(row.run.value)
          .bind(row.step)
          .bind(enum_name(row.kind))
          .bind(enum_name(row.memory))
          .bind(row.proposer)
          .bind(row.note)
          .bind(row.source_digest)
          .bind(row.normalised_digest)
          .bind(row.source)
          .bind(row.plan)
          .bind(row.prompt.value)
          .run());
  const NodeId id{database_->last_id()};
  for (size_t position = 0; position < row.parents.size(); ++position) {
    TRY(TRY(database_->prepare(kInsertEdge))
            .bind(id.value)
            .bind(static_cast<int64_t>(position))
            .bind(row.parents[position].value)
            .run());
  }
  TRY(append(row.run, id, changes));
  TRY(transaction.commit());
  return id;
}

Result<EvaluationId> SqliteStore::insert(const EvaluationRow& row,
                                         std::span<const StatisticRow> changes) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  RunId run;
  {
    Statement find = TRY(database_->prepare(kFindRunOfNode));
    find.bind(row.node.value);
    if (!TRY(find.step())) {
      return Error{Errc::conflict, fmt::format("the store has no node {}", row.node.value)};
    }
    run.value = find.integer(0);
  }
  TRY(TRY(database_->prepare(kInsertEvaluation))
          .bind(row.node.value)
          .bind(row.effort)
          .bind(static_cast<int64_t>(row.confirmed))
          .bind(row.reused_from.value)
          .bind(enum_name(row.verdict))
          .bind(row.fitness)
          .bind(row.evaluation)
          .run());
  const EvaluationId id{database_->last_id()};
  TRY(append(run, row.node, changes));
  TRY(transaction.commit());
  return id;
}

Result<void> SqliteStore::insert(RunId run, std::span<const StatisticRow> changes) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  TRY(append(run, NodeId{}, changes));
  return transaction.commit();
}

Result<int64_t> SqliteStore::insert(const std::variant<PromptRow, AnswerRow>& row) {
  Transaction transaction = TRY(Transaction::begin(*database_));
  if (const auto* prompt = std::get_if<PromptRow>(&row)) {
    TRY(keep_text(prompt->stable_digest, prompt->stable));
    TRY(TRY(database_->prepare(kInsertPrompt))
            .bind(prompt->run.value)
            .bind(prompt->step)
            .bind(prompt->consumed)
            .bind(prompt->follows.value)
            .bind(prompt->style)
            .bind(prompt->model)
            .bind(enum_name(prompt->kind))
            .bind(enum_name(prompt->memory))
            .bind(print_ids(prompt->parents))
            .bind(prompt->digest)
            .bind(prompt->stable_digest)
            .bind(prompt->request)
            .bind(prompt->ground)
            .run());
  } else {
    const auto& answer = std::get<AnswerRow>(row);
    TRY(TRY(database_->prepare(kInsertAnswer))
            .bind(answer.prompt.value)
            .bind(answer.consumed)
            .bind(static_cast<int64_t>(answer.early))
            .bind(answer.outcome)
            .bind(answer.fault)
            .run());
  }
  const int64_t id = database_->last_id();
  TRY(transaction.commit());
  return id;
}

Result<void> SqliteStore::keep_text(const Digest& digest, std::string_view text) {
  return TRY(database_->prepare(kKeepText)).bind(digest).bind(text).run();
}

// A change without a node belongs to the row it is inserted with.
Result<void> SqliteStore::append(RunId run, NodeId unnamed, std::span<const StatisticRow> changes) {
  for (const StatisticRow& change : changes) {
    TRY(TRY(database_->prepare(kInsertStatistic))
            .bind(run.value)
            .bind(change.step)
            .bind((change.node ? change.node : unnamed).value)
            .bind(change.name)
            .bind(change.value)
            .run());
  }
  return {};
}

// --- Opening ------------------------------------------------------------------------------------

Result<void> check_identity(Database& database, const std::string& name) {
  const int64_t version = TRY(database.number("PRAGMA user_version"));
  const int64_t application = TRY(database.number("PRAGMA application_id"));
  const int64_t tables = TRY(database.number("SELECT count(*) FROM sqlite_schema"));
  if (tables > 0 && application != kApplicationId) {
    return Error{Errc::invalid,
                 fmt::format("{} is not an experience database; name another workspace", name)};
  }
  if (version > kSchemaVersion) {
    return Error{Errc::conflict,
                 fmt::format("{} was written by a newer version (schema {}, this one reads up to "
                             "{}); update, or use another workspace",
                             name, version, kSchemaVersion)};
  }
  return {};
}

Result<void> check_pages(Database& database, const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) > kCheckedBytesMax) return {};
  Statement check = TRY(database.prepare("PRAGMA quick_check(1)"));
  if (TRY(check.step()) && check.text(0) == "ok") return {};
  return Error{Errc::invalid, fmt::format("{} is damaged; move it away to start afresh, or restore "
                                          "a copy",
                                          file.string())};
}

Result<void> migrate(Database& database) {
  if (TRY(database.number("PRAGMA user_version")) == kSchemaVersion) return {};
  Transaction transaction = TRY(Transaction::begin(database));
  // Read again under the lock: another process may have just done it.
  const int64_t version = TRY(database.number("PRAGMA user_version"));
  for (int64_t i = version; i < kSchemaVersion; ++i) {
    TRY(database.execute(kMigrations[static_cast<size_t>(i)]));
  }
  TRY(database.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                   kApplicationId, kSchemaVersion)
                           .c_str()));
  return transaction.commit();
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& file, StoreMode mode,
                                                 Milliseconds busy_timeout) {
  const bool writable = mode == StoreMode::read_write;
  std::error_code ignored;
  if (!writable && !std::filesystem::exists(file, ignored)) {
    return Error{Errc::not_found,
                 fmt::format("there is no experience database at {}; `kernelevolve optimize` makes "
                             "one",
                             file.string())};
  }
  std::unique_ptr<Database> database = TRY(Database::open(file, writable, busy_timeout));
  TRY(check_identity(*database, file.string()));
  if (!writable && TRY(database->number("PRAGMA user_version")) < kSchemaVersion) {
    // An older version wrote it; a reader needs today's tables as well.
    TRY(open_sqlite_store(file, StoreMode::read_write, busy_timeout));
  }
  TRY(check_pages(*database, file));
  if (writable) {
    // NORMAL: a commit survives a kill at once; only a power cut may undo the last ones.
    TRY(database->execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON"));
    TRY(migrate(*database));
  }
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(database)));
}

}  // namespace ke
