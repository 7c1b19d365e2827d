// SPDX-License-Identifier: Apache-2.0
//
// One conformance suite for every store: what a caller may rely on.
#include "store/store.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/rng.hpp"

namespace ke {
namespace {

// A store in a fresh folder, removed at the end.
struct Fixture {
  std::filesystem::path folder;
  std::unique_ptr<Store> store;
  ~Fixture() {
    store.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
};

std::filesystem::path fresh_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "ke_store_XXXXXX").string();
  return mkdtemp(name.data());
}

struct Maker {
  const char* name;
  std::unique_ptr<Fixture> (*make)();
};

std::unique_ptr<Fixture> make_memory() {
  auto fixture = std::make_unique<Fixture>();
  fixture->store = make_memory_store();
  return fixture;
}

std::unique_ptr<Fixture> make_sqlite() {
  auto fixture = std::make_unique<Fixture>();
  fixture->folder = fresh_folder();
  fixture->store = *open_sqlite_store(fixture->folder / "experience.db");
  return fixture;
}

class StoreConformance : public testing::TestWithParam<Maker> {
 protected:
  void SetUp() override { fixture_ = GetParam().make(); }
  Store& store() { return *fixture_->store; }

  ProblemId problem(const std::string& name = "level1/19_ReLU") {
    return *store().insert(ProblemRow{.name = name, .path = "/p.py", .digest = digest_of(name)});
  }
  Scope scope(const std::string& toolchain = "g++ 12") {
    return Scope{problem(), "x86", toolchain};
  }
  RunId run(const Scope& of) {
    return *store().insert(RunRow{.scope = of, .config = "{}", .seed = 7, .started_utc_ms = 5});
  }
  NodeId node(RunId of, int64_t step, std::vector<NodeId> parents = {},
              const std::string& source = "int x;") {
    return *store().insert(NodeRow{.run = of,
                                   .step = step,
                                   .kind = parents.empty() ? NodeKind::draft : NodeKind::mutate,
                                   .memory = Memory::siblings,
                                   .parents = std::move(parents),
                                   .proposer = "synth",
                                   .source = source,
                                   .source_digest = digest_of(source),
                                   .normalised_digest = digest_of("n" + source),
                                   .plan = "{\"kernels\":[]}",
                                   .note = "wider"},
                           {});
  }
  EvaluationId evaluation(NodeId of, std::optional<double> fitness, bool confirmed = false) {
    return *store().insert(EvaluationRow{.node = of,
                                         .evaluation = "{\"a\":1}",
                                         .effort = confirmed ? "confirm" : "screen",
                                         .confirmed = confirmed,
                                         .verdict = fitness ? Verdict::accepted : Verdict::crashed,
                                         .fitness = fitness},
                           {});
  }

 private:
  std::unique_ptr<Fixture> fixture_;
};

TEST_P(StoreConformance, ProblemsAreInsertedOnceByNameAndDigest) {
  const ProblemId first = problem("a");
  EXPECT_EQ(problem("a"), first);
  EXPECT_NE(problem("b"), first);
  const std::vector<ProblemRow> rows = *store().problems();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[0].path, "/p.py");
  EXPECT_EQ(rows[0].digest, digest_of("a"));
}

TEST_P(StoreConformance, RunsKeepTheirFieldsAndTheirLatestEnd) {
  const Scope at = scope();
  const RunId id = *store().insert(
      RunRow{.scope = at,
             .config = "{\"steps\":60}",
             .description = "{\"problem\":1}",
             .seed = UINT64_MAX,
             .started_utc_ms = 1234});
  EXPECT_FALSE((*store().runs({.id = id}))[0].ended_utc_ms.has_value());
  ASSERT_TRUE(store().insert(RunEndRow{id, 2000, "stopped"}));
  ASSERT_TRUE(store().insert(RunEndRow{id, 3000, "steps"}));
  const std::vector<RunRow> rows = *store().runs({});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].scope, at);
  EXPECT_EQ(rows[0].config, "{\"steps\":60}");
  EXPECT_EQ(rows[0].description, "{\"problem\":1}");
  EXPECT_EQ(rows[0].seed, UINT64_MAX);
  EXPECT_EQ(rows[0].started_utc_ms, 1234);
  EXPECT_EQ(rows[0].ended_utc_ms, 3000);
  EXPECT_EQ(rows[0].end_reason, "steps");
  EXPECT_TRUE(store().runs({.id = RunId{99}})->empty());
  EXPECT_TRUE(store().runs({.problem = ProblemId{99}})->empty());
}

TEST_P(StoreConformance, NodesKeepTheirFieldsAndTheOrderOfTheirParents) {
  const RunId in = run(scope());
  const NodeId a = node(in, 1);
  const NodeId b = node(in, 2);
  const NodeId c = node(in, 3, {b, a}, "int y;");
  const NodeRow row = (*store().nodes({.id = c}))[0];
  EXPECT_EQ(row.parents, (std::vector<NodeId>{b, a}));
  EXPECT_EQ(row.run, in);
  EXPECT_EQ(row.step, 3);
  EXPECT_EQ(row.kind, NodeKind::mutate);
  EXPECT_EQ(row.memory, Memory::siblings);
  EXPECT_EQ(row.proposer, "synth");
  EXPECT_EQ(row.source, "int y;");
  EXPECT_EQ(row.source_digest, digest_of("int y;"));
  EXPECT_EQ(row.normalised_digest, digest_of("nint y;"));
  EXPECT_EQ(row.plan, "{\"kernels\":[]}");
  EXPECT_EQ(row.note, "wider");
}

TEST_P(StoreConformance, NodesAreFoundByRunChildScopeDigestAndPage) {
  const Scope at = scope();
  const RunId first = run(at);
  const RunId second = run(scope("g++ 13"));
  const NodeId a = node(first, 1, {}, "s");
  const NodeId b = node(first, 2, {a}, "t");
  const NodeId c = node(second, 1, {a}, "s");
  const auto ids = [&](const NodeQuery& query) {
    std::vector<NodeId> found;
    const std::vector<NodeRow> rows = *store().nodes(query);
    for (const NodeRow& row : rows) found.push_back(row.id);
    return found;
  };
  EXPECT_EQ(ids({.run = first}), (std::vector{a, b}));
  EXPECT_EQ(ids({.child_of = a}), (std::vector{b, c}));
  EXPECT_EQ(ids({.normalised_digest = digest_of("ns")}), (std::vector{a, c}));
  EXPECT_EQ(ids({.scope = at, .normalised_digest = digest_of("ns")}), (std::vector{a}));
  EXPECT_EQ(ids({.scope = Scope{at.problem, "cuda", "g++ 12"}}), std::vector<NodeId>{});
  EXPECT_EQ(ids({.after = a, .limit = 1}), (std::vector{b}));
  const NodeRow bare = (*store().nodes({.id = a, .with_source = false}))[0];
  EXPECT_TRUE(bare.source.empty());
  EXPECT_TRUE(bare.plan.empty());
}

TEST_P(StoreConformance, TextMayHoldAnything) {
  const std::string odd = std::string("a\0b", 3) + "\xff\xfe'\"\n\u20ac";
  const NodeId id = node(run(scope()), 1, {}, odd);
  EXPECT_EQ((*store().nodes({.id = id}))[0].source, odd);
}

TEST_P(StoreConformance, RefusesASecondNodeOfOneStepAndKeepsTheFirst) {
  const RunId in = run(scope());
  node(in, 1, {}, "first");
  const StatisticRow change{.step = 1, .name = "visits", .value = 1};
  const auto refused = store().insert(NodeRow{.run = in, .step = 1}, std::span(&change, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_EQ(store().nodes({.run = in})->size(), 1u);
  EXPECT_TRUE(store().statistics({.run = in})->empty());
}

TEST_P(StoreConformance, RefusesRowsThatNameMissingOnes) {
  const RunId in = run(scope());
  const NodeId a = node(in, 1);
  EXPECT_EQ(store().insert(NodeRow{.run = RunId{9}, .step = 1}, {}).error().code, Errc::conflict);
  EXPECT_EQ(store().insert(NodeRow{.run = in, .step = 2, .parents = {NodeId{9}}}, {}).error().code,
            Errc::conflict);
  EXPECT_EQ(store().insert(EvaluationRow{.node = NodeId{9}}, {}).error().code, Errc::conflict);
  EXPECT_EQ(
      store().insert(EvaluationRow{.node = a, .reused_from = EvaluationId{9}}, {}).error().code,
      Errc::conflict);
  EXPECT_EQ(store().nodes({})->size(), 1u);
  EXPECT_TRUE(store().evaluations({})->empty());
}

TEST_P(StoreConformance, EvaluationsKeepTheirFields) {
  const RunId in = run(scope());
  const NodeId a = node(in, 1);
  const EvaluationId screened = evaluation(a, 1.5);
  const EvaluationId reused = *store().insert(EvaluationRow{.node = a,
                                                            .evaluation = "{}",
                                                            .effort = "confirm",
                                                            .confirmed = true,
                                                            .reused_from = screened,
                                                            .verdict = Verdict::wrong_output},
                                              {});
  const std::vector<EvaluationRow> rows = *store().evaluations({.node = a});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, screened);
  EXPECT_EQ(rows[0].fitness, 1.5);
  EXPECT_EQ(rows[0].verdict, Verdict::accepted);
  EXPECT_EQ(rows[0].evaluation, "{\"a\":1}");
  EXPECT_FALSE(rows[0].confirmed);
  EXPECT_FALSE(rows[0].reused_from);
  EXPECT_EQ(rows[1].id, reused);
  EXPECT_EQ(rows[1].reused_from, screened);
  EXPECT_EQ(rows[1].verdict, Verdict::wrong_output);
  EXPECT_EQ(rows[1].effort, "confirm");
  EXPECT_TRUE(rows[1].confirmed);
  EXPECT_FALSE(rows[1].fitness.has_value());
}

TEST_P(StoreConformance, BestFirstHoldsAcceptedOnesOfTheScopeByFitness) {
  const Scope at = scope();
  const RunId in = run(at);
  const RunId elsewhere = run(scope("clang"));
  const EvaluationId slow = evaluation(node(in, 1), 1.0);
  evaluation(node(in, 2), std::nullopt);
  const EvaluationId fast = evaluation(node(in, 3), 3.0);
  const EvaluationId tied = evaluation(node(in, 4), 3.0);
  evaluation(node(elsewhere, 1), 9.0);
  const auto ids = [&](EvaluationQuery query) {
    query.order = EvaluationQuery::Order::best_first;
    std::vector<EvaluationId> found;
    const std::vector<EvaluationRow> rows = *store().evaluations(query);
    for (const EvaluationRow& row : rows) found.push_back(row.id);
    return found;
  };
  EXPECT_EQ(ids({.scope = at}), (std::vector{fast, tied, slow}));
  EXPECT_EQ(ids({.run = in, .limit = 2}), (std::vector{fast, tied}));
  EXPECT_EQ(ids({.scope = Scope{at.problem, "x86", "none"}}), std::vector<EvaluationId>{});
}

TEST_P(StoreConformance, StatisticsAreALogThatCanBeReadAsOfAStep) {
  const RunId in = run(scope());
  const NodeId a = *store().insert(NodeRow{.run = in, .step = 1},
                                   std::vector<StatisticRow>{{1, NodeId{}, "island", 2}});
  ASSERT_TRUE(store().insert(EvaluationRow{.node = a, .fitness = 2.0},
                             std::vector<StatisticRow>{{1, a, "visits", 1}}));
  ASSERT_TRUE(store().insert(in, std::vector<StatisticRow>{{4, a, "visits", 2}}));
  const std::vector<StatisticRow> all = *store().statistics({.run = in});
  EXPECT_EQ(all, (std::vector<StatisticRow>{
                     {1, a, "island", 2}, {1, a, "visits", 1}, {4, a, "visits", 2}}));
  EXPECT_EQ(store().statistics({.run = in, .as_of_step = 3})->size(), 2u);
  EXPECT_TRUE(store().statistics({.run = in, .node = NodeId{5}})->empty());
  EXPECT_TRUE(store().statistics({.run = in, .as_of_step = 0})->empty());
}

TEST_P(StoreConformance, ExchangesKeepTheirFieldsAndTheJournalTheirOrder) {
  const RunId in = run(scope());
  const NodeId a = node(in, 1);
  const PromptRow asked{.run = in,
                        .step = 1,
                        .consumed = 0,
                        .style = "llm",
                        .model = "fake:m",
                        .kind = NodeKind::mutate,
                        .memory = Memory::both,
                        .parents = {a, a},
                        .digest = digest_of("p"),
                        .stable_digest = digest_of("shared"),
                        .stable = "shared",
                        .request = "{\"messages\":[]}",
                        .ground = "{\"documents\":[]}"};
  const PromptId first{*store().insert(asked)};
  PromptRow next = asked;
  next.follows = first;
  const PromptId second{*store().insert(next)};
  evaluation(a, 1.5);
  const AnswerRow answer{.prompt = first, .consumed = 1, .early = true, .outcome = "{}"};
  ASSERT_TRUE(store().insert(answer));
  ASSERT_TRUE(store().insert(AnswerRow{.prompt = first, .outcome = "[]", .fault = "no block"}));
  const NodeId written = *store().insert(NodeRow{.run = in, .step = 2, .prompt = first}, {});
  const std::vector<ExchangeRow> rows = *store().exchanges({.run = in});
  ASSERT_EQ(rows.size(), 2u);
  const PromptRow& kept = rows[0].prompt;
  EXPECT_EQ(kept.id, first);
  EXPECT_EQ(kept.model, "fake:m");
  EXPECT_EQ(kept.style, "llm");
  EXPECT_EQ(kept.kind, NodeKind::mutate);
  EXPECT_EQ(kept.memory, Memory::both);
  EXPECT_EQ(kept.parents, (std::vector<NodeId>{a, a}));
  EXPECT_EQ(kept.digest, digest_of("p"));
  EXPECT_EQ(kept.stable, "shared");
  EXPECT_EQ(kept.request, asked.request);
  EXPECT_EQ(kept.ground, asked.ground);
  ASSERT_EQ(rows[0].answers.size(), 2u);
  EXPECT_TRUE(rows[0].answers[0].early);
  EXPECT_EQ(rows[0].answers[0].consumed, 1);
  EXPECT_EQ(rows[0].answers[1].fault, "no block");
  EXPECT_EQ(rows[1].prompt.follows, first);
  EXPECT_TRUE(rows[1].answers.empty());
  EXPECT_EQ(store().exchanges({.prompt = second})->size(), 1u);
  EXPECT_EQ((*store().nodes({.id = written}))[0].prompt, first);
  std::string order;
  const std::vector<JournalRow> journal = *store().journal(in);
  for (const JournalRow& row : journal) order += std::string(enum_name(row.kind)) + " ";
  EXPECT_EQ(order, "node prompt prompt evaluation answer answer node ");
  EXPECT_EQ(journal.back().row, written.value);
}

TEST_P(StoreConformance, RefusesExchangesThatNameMissingRows) {
  const RunId in = run(scope());
  EXPECT_EQ(store().insert(PromptRow{.run = RunId{9}}).error().code, Errc::conflict);
  EXPECT_EQ(store().insert(PromptRow{.run = in, .follows = PromptId{9}}).error().code,
            Errc::conflict);
  EXPECT_EQ(store().insert(AnswerRow{.prompt = PromptId{9}}).error().code, Errc::conflict);
  EXPECT_EQ(store().insert(NodeRow{.run = in, .step = 1, .prompt = PromptId{9}}, {}).error().code,
            Errc::conflict);
  EXPECT_TRUE(store().journal(in)->empty());
}

INSTANTIATE_TEST_SUITE_P(All, StoreConformance,
                         testing::Values(Maker{"Memory", make_memory},
                                         Maker{"Sqlite", make_sqlite}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ke
