// SPDX-License-Identifier: Apache-2.0
#include "fakes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json.hpp"

namespace ke::sim {

const Genes kPlanted = {4, 1, 3, 0, 5, 2};

std::string print_genes(const Genes& genes) {
  std::string text = "genes";
  for (const int gene : genes) text += fmt::format(" {}", gene);
  return text;
}

Genes parse_genes(std::string_view source) {
  Genes genes{};
  size_t at = source.find(' ');
  for (int& gene : genes) {
    gene = std::atoi(source.substr(at).data());
    at = std::min(source.find(' ', at + 1), source.size() - 1);
  }
  return genes;
}

double landscape(const Genes& genes) {
  double fitness = 1;
  for (size_t i = 0; i < genes.size(); ++i) {
    const int distance = std::abs(genes[i] - kPlanted[i]);
    fitness *= 1 + 0.3 / (1 + distance);
  }
  const bool pair = genes[0] == kPlanted[0] && genes[1] == kPlanted[1];
  return pair ? fitness * 1.2 : fitness;
}

double optimum() { return landscape(kPlanted); }

namespace {

class GenesProposer final : public Proposer {
 public:
  Result<std::optional<Proposal>> propose(const ProposalContext& context, Rng& rng) const override {
    for (int tries = 0; tries < 24; ++tries) {
      Proposal proposal{.source = print_genes(draw(context, rng)), .note = "drawn"};
      for (const ParentView& parent : context.parents) proposal.parents.push_back(parent.node.id);
      if (!context.is_known(proposal.source)) return std::optional<Proposal>(std::move(proposal));
    }
    return std::optional<Proposal>();
  }

 private:
  static Genes draw(const ProposalContext& context, Rng& rng) {
    Genes genes{};
    if (context.kind == NodeKind::draft) {
      for (int& gene : genes) gene = static_cast<int>(rng.below(kAlleles));
      return genes;
    }
    genes = parse_genes(context.parents[0].node.source);
    if (context.kind == NodeKind::cross) {
      const Genes other = parse_genes(context.parents[1].node.source);
      for (size_t i = 0; i < genes.size(); ++i) {
        if (rng.chance(0.5)) genes[i] = other[i];
      }
      return genes;
    }
    const int changes = rng.chance(0.3) ? 2 : 1;
    for (int i = 0; i < changes; ++i) {
      genes[static_cast<size_t>(rng.below(kGenes))] = static_cast<int>(rng.below(kAlleles));
    }
    return genes;
  }
};

class IdleProposer final : public Proposer {
 public:
  Result<std::optional<Proposal>> propose(const ProposalContext&, Rng&) const override {
    return std::optional<Proposal>();
  }
};

// A number in [0, 1) that belongs to a kernel and a purpose.
double fate(const std::string& source, const char* purpose) {
  return Rng(0).split(source).split(purpose).uniform();
}

}  // namespace

const ProposerInfo kGenesProposer{
    .name = "genes", .help = "draws genes", .make = [] {
      return std::unique_ptr<Proposer>(std::make_unique<GenesProposer>());
    }};
const ProposerInfo kIdleProposer{
    .name = "idle", .help = "has no ideas", .make = [] {
      return std::unique_ptr<Proposer>(std::make_unique<IdleProposer>());
    }};

// --- FakeEvaluator ------------------------------------------------------------------------------

FakeEvaluator::FakeEvaluator(os::FakeClock& clock, Faults faults)
    : clock_(clock), faults_(faults) {}

Result<Artifact> FakeEvaluator::build(const std::string& source) {
  Artifact artifact{.built_path = source, .build_ms = 5};
  if (fate(source, "build") < faults_.build_failures) {
    artifact.failure = Evaluation{.verdict = Verdict::compile_error, .detail = "planted"};
  }
  return artifact;
}

Result<Evaluation> FakeEvaluator::judge(const Artifact& artifact, const JudgeOptions& options) {
  const std::string& source = artifact.built_path;
  clock_.advance(std::chrono::milliseconds(10));
  Evaluation evaluation{.verdict = Verdict::accepted, .judge_ms = 10};
  if (options.effort == Effort::confirm) {
    evaluation.confirmed = true;
    if (++confirmations_ <= faults_.failing_confirmations) {
      evaluation.verdict = Verdict::wrong_output;
      return evaluation;
    }
  } else {
    int64_t call = 0;
    {
      const std::lock_guard lock(mutex_);
      screened_.push_back(source);
      call = ++calls_;
    }
    if (on_screen) on_screen(call);
    if (call == faults_.judge_error_at) return Error{Errc::internal, "the judge broke down"};
    if (fate(source, "judge") < faults_.rejections) {
      evaluation.verdict = Verdict::wrong_output;
      return evaluation;
    }
  }
  const double fitness = source.starts_with("genes") ? landscape(parse_genes(source)) : 1.0;
  const auto time_ns = static_cast<int64_t>(1e6 / fitness);
  evaluation.measurement = Measurement{.candidate_ns = {time_ns},
                                       .time_ns = time_ns,
                                       .speedup = fitness,
                                       .speedup_low = fitness,
                                       .speedup_high = fitness};
  return evaluation;
}

std::vector<std::string> FakeEvaluator::screened() const {
  const std::lock_guard lock(mutex_);
  return screened_;
}

// --- WatchedStore -------------------------------------------------------------------------------

Result<void> WatchedStore::insert(const RunEndRow& row) {
  TRY(before_(++inserts_));
  return store_.insert(row);
}

Result<NodeId> WatchedStore::insert(const NodeRow& row, std::span<const StatisticRow> changes) {
  TRY(before_(++inserts_));
  return store_.insert(row, changes);
}

Result<EvaluationId> WatchedStore::insert(const EvaluationRow& row,
                                          std::span<const StatisticRow> changes) {
  TRY(before_(++inserts_));
  return store_.insert(row, changes);
}

Result<void> WatchedStore::insert(RunId run, std::span<const StatisticRow> changes) {
  TRY(before_(++inserts_));
  return store_.insert(run, changes);
}

Result<int64_t> WatchedStore::insert(const std::variant<PromptRow, AnswerRow>& row) {
  TRY(before_(++inserts_));
  return store_.insert(row);
}

// --- The rest -----------------------------------------------------------------------------------

void RecordedEvents::emit(std::string_view name, const Json& fields) {
  lines.push_back(fmt::format("{} {}", name, dump_json(fields)));
}

int64_t RecordedEvents::count(std::string_view name) const {
  return std::ranges::count_if(
      lines, [&](const std::string& line) { return std::string_view(line).starts_with(name); });
}

SearchDependencies World::dependencies() {
  return {.clock = clock,
          .evaluator = evaluator,
          .graph = graph,
          .target = target,
          .target_name = "fake",
          .conditions = {},
          .machine = machine,
          .problem = problem,
          .proposers = proposers,
          .events = events,
          .stop = stop.get_token()};
}

SearchOptions options_of(std::string policy, uint64_t seed, int64_t steps) {
  SearchOptions options;
  options.policy = std::move(policy);
  options.seed = seed;
  options.steps = steps;
  options.proposers = {"genes", "idle", "tune"};
  options.history_seeds = 0;
  return options;
}

std::string journal(const GraphReader& graph, RunId run) {
  Json json = *export_run(graph, run);
  for (const char* key : {"started_utc_ms", "ended_utc_ms", "end_reason", "config"})
    json.erase(key);
  for (Json& node : json["nodes"]) {
    Json screens = Json::array();
    for (Json& one : node["evaluations"]) {
      if (one["effort"] == "screen") screens.push_back(one["evaluation"]);
    }
    node["evaluations"] = std::move(screens);
  }
  return json.dump(1);
}

}  // namespace ke::sim
