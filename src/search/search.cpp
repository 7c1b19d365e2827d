// SPDX-License-Identifier: Apache-2.0
#include "search/search.hpp"

#include "base/json.hpp"
#include "search/confirm.hpp"
#include "search/engine.hpp"

namespace ke {
namespace {

// The best node with the screening figure it has: what a cut-short run hands back.
Result<Confirmation> unconfirmed(const SearchDependencies& dependencies, RunId run) {
  const std::vector<RankedNode> ranked = TRY(dependencies.graph.best_of_run(run, 1));
  if (ranked.empty()) return Confirmation{};
  const std::optional<NodeEvaluation> found =
      TRY(dependencies.graph.verdict_of(ranked.front().node));
  return Confirmation{ranked.front().node, found->evaluation};
}

// Searches until an end rule applies; the engine's workers have ended when this returns.
Result<SearchResult> explore(std::unique_ptr<Engine> engine, const SearchDependencies& dependencies,
                             const SearchOptions& options) {
  dependencies.events.emit("run.started", {{"run", engine->run().value},
                                           {"policy", options.policy},
                                           {"proposers", options.proposers},
                                           {"steps", options.steps},
                                           {"seed", options.seed}});
  const EndReason reason = TRY(engine->loop());
  TRY(engine->hang_up());
  SearchResult result = engine->counts();
  result.reason = reason;
  return result;
}

Result<SearchResult> conclude(SearchResult result, const SearchDependencies& dependencies,
                              const SearchOptions& options) {
  const bool stopped = result.reason == EndReason::stopped;
  const int64_t count = stopped ? 1 : options.confirm_count;
  const bool confirms = count > 0 && (!stopped || options.confirm_on_stop);
  Confirmation best = confirms ? TRY(confirm_best(dependencies, result.run, count))
                               : TRY(unconfirmed(dependencies, result.run));
  result.best = best.best;
  result.evaluation = std::move(best.evaluation);
  TRY(dependencies.graph.end_run({.run = result.run,
                                  .ended_utc_ms = dependencies.clock.utc_ms(),
                                  .reason = std::string(enum_name(result.reason))}));
  const std::optional<double> figure =
      result.evaluation ? fitness(*result.evaluation) : std::nullopt;
  dependencies.events.emit("run.finished",
                           {{"run", result.run.value},
                            {"reason", enum_name(result.reason)},
                            {"best", result.best ? Json(result.best.value) : Json(nullptr)},
                            {"speedup", or_null(figure)}});
  return result;
}

}  // namespace

Result<SearchResult> search(const SearchDependencies& dependencies, const SearchOptions& options) {
  std::unique_ptr<Engine> engine = TRY(Engine::create(dependencies, options));
  TRY(engine->start());
  return conclude(TRY(explore(std::move(engine), dependencies, options)), dependencies, options);
}

Result<SearchResult> resume(const SearchDependencies& dependencies, RunId run,
                            const SearchOptions& options) {
  std::unique_ptr<Engine> engine = TRY(Engine::create(dependencies, options));
  TRY(engine->restore(run));
  return conclude(TRY(explore(std::move(engine), dependencies, options)), dependencies, options);
}

}  // namespace ke
