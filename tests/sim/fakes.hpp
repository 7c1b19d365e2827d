// SPDX-License-Identifier: Apache-2.0
//
// A world to search in without compilers or clocks: kernels are lines of genes, the judge reads
// their fitness from a planted landscape, and faults come from a seed.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "eval/evaluator.hpp"
#include "os/clock.hpp"
#include "propose/testing.hpp"
#include "search/search.hpp"

namespace ke::sim {

constexpr int kGenes = 6;
constexpr int kAlleles = 6;

using Genes = std::array<int, kGenes>;

std::string print_genes(const Genes& genes);
Genes parse_genes(std::string_view source);

// Fitness 1 at worst, kOptimum at the planted genes; neighbours of the optimum are good, and two
// genes only pay together.
double landscape(const Genes& genes);
extern const Genes kPlanted;
double optimum();

extern const ProposerInfo kGenesProposer;  // draft, mutate and cross on genes
extern const ProposerInfo kIdleProposer;   // never has an idea

struct Faults {
  double build_failures = 0;          // share of kernels that do not compile
  double rejections = 0;              // share with a wrong output
  int64_t judge_error_at = 0;         // this call of judge() fails with an Error; 0: none
  int64_t failing_confirmations = 0;  // the first so many confirmations find a wrong output
};

// Which kernels fail is a property of the kernel, so that every run finds the same.
class FakeEvaluator final : public Evaluator {
 public:
  explicit FakeEvaluator(os::FakeClock& clock, Faults faults = {});

  Result<Artifact> build(const std::string& source) override;
  Result<Evaluation> judge(const Artifact& artifact, const JudgeOptions& options) override;
  Result<std::vector<std::string>> admission_flags() override { return std::vector<std::string>(); }
  int64_t floor_ns() const override { return floor; }

  int64_t floor = 0;
  std::function<void(int64_t call)> on_screen;  // runs in the judge's thread, before the result
  std::vector<std::string> screened() const;    // sources, in the order of judging
  int64_t confirmations() const { return confirmations_; }

 private:
  os::FakeClock& clock_;
  Faults faults_;
  mutable std::mutex mutex_;
  std::vector<std::string> screened_;
  int64_t calls_ = 0;
  std::atomic<int64_t> confirmations_{0};
};

// Calls `before` with the number of each insert, from 1; an error it returns replaces the insert.
class WatchedStore final : public Store {
 public:
  WatchedStore(Store& store, std::function<Result<void>(int64_t)> before)
      : store_(store), before_(std::move(before)) {}

  Result<std::vector<ProblemRow>> problems() const override { return store_.problems(); }
  Result<std::vector<RunRow>> runs(const RunQuery& q) const override { return store_.runs(q); }
  Result<std::vector<NodeRow>> nodes(const NodeQuery& q) const override { return store_.nodes(q); }
  Result<std::vector<EvaluationRow>> evaluations(const EvaluationQuery& q) const override {
    return store_.evaluations(q);
  }
  Result<std::vector<StatisticRow>> statistics(const StatisticQuery& q) const override {
    return store_.statistics(q);
  }
  Result<std::vector<ExchangeRow>> exchanges(const ExchangeQuery& q) const override {
    return store_.exchanges(q);
  }
  Result<std::vector<JournalRow>> journal(RunId run) const override { return store_.journal(run); }
  Result<ProblemId> insert(const ProblemRow& row) override { return store_.insert(row); }
  Result<RunId> insert(const RunRow& row) override { return store_.insert(row); }
  Result<void> insert(const RunEndRow& row) override;
  Result<NodeId> insert(const NodeRow& row, std::span<const StatisticRow> changes) override;
  Result<EvaluationId> insert(const EvaluationRow& row,
                              std::span<const StatisticRow> changes) override;
  Result<void> insert(RunId run, std::span<const StatisticRow> changes) override;
  Result<int64_t> insert(const std::variant<PromptRow, AnswerRow>& row) override;

 private:
  Store& store_;
  std::function<Result<void>(int64_t)> before_;
  int64_t inserts_ = 0;
};

// Keeps events as text: "name {json}".
class RecordedEvents final : public EventSink {
 public:
  void emit(std::string_view name, const Json& fields) override;
  std::vector<std::string> lines;
  int64_t count(std::string_view name) const;
};

// Everything a search needs, over one store.
struct World {
  explicit World(Store& at, Faults faults = {}) : graph(at), evaluator(clock, faults) {}

  SearchDependencies dependencies();

  os::FakeClock clock;
  ExperienceGraph graph;
  FakeEvaluator evaluator;
  testing_support::FakeTarget target;
  MachineProfile machine;
  Problem problem{.name = "sim/genes", .path = "genes.py", .digest = digest_of("genes")};
  RecordedEvents events;
  std::vector<const ProposerInfo*> proposers = {&kGenesProposer, &kIdleProposer,
                                                find_proposer("tune")};
  std::stop_source stop;
};

SearchOptions options_of(std::string policy, uint64_t seed, int64_t steps);

// The journal of a run: everything recorded but times of day and confirmations.
std::string journal(const GraphReader& graph, RunId run);

}  // namespace ke::sim
