// SPDX-License-Identifier: Apache-2.0
//
// The search: proposes, judges, records, and confirms what it hands back. Engine logic runs on the
// calling thread; building and judging run ahead on workers, and results are consumed in the order
// in which they were proposed, so that one seed and the same evaluations give the same run.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/events.hpp"
#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "domain/conditions.hpp"
#include "domain/evaluation.hpp"
#include "domain/machine.hpp"
#include "domain/problem.hpp"
#include "eval/evaluator.hpp"
#include "graph/graph.hpp"
#include "ir/program.hpp"
#include "os/clock.hpp"
#include "propose/model/models.hpp"
#include "propose/model/tasks.hpp"
#include "propose/proposer.hpp"
#include "target/target.hpp"

namespace ke {

// Who runs context memory and deep search, which come before a model's proposal: this program, or
// the model itself.
enum class SubAgents : uint8_t { embedded, model };

// What a run asks of language models; kept in its config, so that `resume` goes on under the same.
struct ModelOptions {
  std::vector<std::string> names;  // "openai:NAME"; empty: none, and the rest does not matter
  int32_t calls = 2;               // in flight at a time
  double share = 0.5;              // of the steps that is kept for models while they answer
  std::optional<int64_t> tokens_max;
  std::optional<int64_t> calls_max;
  std::optional<double> usd_max;
  std::string prices;              // file of a llm::PriceTable; empty: none
  SubAgents sub_agents = SubAgents::embedded;
  std::string embeddings;          // "openai:NAME", to find documents with; empty: by words alone
};

// A source that enters the run as it is, before the first draft.
struct SeedKernel {
  std::string name;  // "my_relu.cpp", for notes
  std::string source;
  std::string proposer = "user";  // whose it is
  std::string plan = {};          // of a source that has one
};

struct SearchOptions {
  int64_t steps = 60;          // nodes in all, seeds included
  Milliseconds time_limit{0};  // 0: none; confirmation begins at its end
  uint64_t seed = 0;
  std::string policy = "greedy";
  std::vector<std::string> proposers = {"synth", "tune"};
  int64_t drafts = 5;             // made without parents before the policy is asked
  int64_t history_seeds = 3;      // best earlier nodes of the scope that enter as seeds
  int64_t stall_steps = 0;        // stop after so many without a gain of 1 %; 0: never
  double target_speedup = 0;      // stop at this fitness; 0: none
  bool stop_near_floor = true;    // stop within 10 % of the physical floor
  int32_t build_ahead = 2;        // candidates built while one is judged
  int32_t confirm_count = 3;      // best distinct candidates that are judged again at the end
  bool confirm_on_stop = true;    // after a user's stop, confirm the best one still
  bool reuse = true;              // verdicts of equal sources in earlier runs
  ModelOptions models;
  std::vector<SeedKernel> seeds;  // not kept in the run's config: they are nodes
};

Json encode(const SearchOptions& options);
// Errc::conflict for the config of a run that no search made.
Result<SearchOptions> decode_search_options(const Json& json);

// A run of kernels that were handed in from outside: its config says so, and holds no options.
inline constexpr const char* kSubmissions = "submissions";
Json config_of_submissions();

// Why a run ended.
enum class EndReason : uint8_t {
  steps,
  time,
  stall,
  target_speedup,
  near_floor,
  stopped,
  exhausted
};

struct SearchDependencies {
  os::Clock& clock;
  Evaluator& evaluator;
  ExperienceGraph& graph;
  const Target& target;
  std::string target_name;
  // Nodes are reused only where they are equal (they become part of the scope's toolchain).
  Conditions conditions;
  const MachineProfile& machine;
  const Problem& problem;  // of case 0
  std::vector<const Problem*> cases = {};  // all shape cases where there are several
  // One a shape case. Empty: proposers that need them have no ideas.
  std::vector<ir::Program> programs = {};
  std::span<const ProposerInfo* const> proposers = all_proposers();  // where names are looked up
  // Proposers `llm` and `strategist` need both. Null: there are no models.
  Models* models = nullptr;
  const ModelTasks* tasks = nullptr;
  const Pace* pace = nullptr;   // replays only: what may happen next
  EventSink& events;
  std::stop_token stop;  // the user's Ctrl-C: finish the evaluation under way, confirm
};

struct ModelCost {
  int64_t calls = 0;
  int64_t tokens = 0;
  double usd = 0;
  bool operator==(const ModelCost&) const = default;
};
// What models cost and brought, over the whole run.
struct ModelSpending {
  int64_t calls = 0;   // sent, whether they were answered or failed
  int64_t tokens = 0;  // in and out
  double usd = 0;
  int64_t kernels = 0;   // nodes that models wrote
  int64_t accepted = 0;  // of those
  ModelCost sub_agents = {};  // of calls, tokens and usd: before proposals
  bool operator==(const ModelSpending&) const = default;
};

struct SearchResult {
  RunId run;
  EndReason reason = EndReason::steps;
  NodeId best;                           // 0 when nothing was accepted
  std::optional<Evaluation> evaluation;  // of best; evaluation->confirmed unless cut short
  int64_t steps = 0;                     // nodes of the run
  int64_t evaluated = 0;                 // judged here, without reused ones
  int64_t reused = 0;                    // equal to a node of an earlier run
  std::map<Verdict, int64_t> verdicts;   // of all nodes with an evaluation
  ModelSpending models;
};

// Events: run.started {run, policy, proposers, steps, seed}, step.finished {step, node, kind,
// proposer, verdict, speedup, best, build_ms, judge_ms, reused, note}, run.confirming {node, rank,
// count}, run.finished {run, reason, best, speedup}. speedup and best are null when unknown.
// With models: model.asked {prompt, model, style, kind}, model.early {prompt, after_ms},
// model.answered {prompt, model, after_ms, saved_ms, tokens, usd, fault}: saved_ms by judging a
// block early; model.tool {prompt, tool, took_ms}: its answer asked for one, and it was used;
// model.cut {prompt}: the run ended while the model wrote on behind a good block;
// model.failed {prompt, model, kind, message}, model.ended {model, message} once a model, and
// model.stand_in {prompt, agent, message}: the conversation goes on with what the version of that
// sub-agent without a model gives, since the prompt brought nothing of use; models.away {message}
// when none can be asked and the embedded proposers go on alone.
//
// Errors: Errc::invalid for an unknown policy or proposer; whatever the store or the evaluator
// report, after which the run can be resumed.
Result<SearchResult> search(const SearchDependencies& dependencies, const SearchOptions& options);

// Continues a run: nodes with an evaluation are not judged again, nodes without one are judged.
// `options` are the run's own (run_options), perhaps with more steps or time. Errc::conflict when
// the run is of another problem, target or toolchain.
Result<SearchResult> resume(const SearchDependencies& dependencies, RunId run,
                            const SearchOptions& options);

Result<SearchOptions> run_options(const GraphReader& graph, RunId run);

}  // namespace ke

template <>
inline constexpr std::array<std::string_view, 7> ke::kEnumNames<ke::EndReason>{
    "steps", "time", "stall", "target_speedup", "near_floor", "stopped", "exhausted"};
template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::SubAgents>{"embedded", "model"};
