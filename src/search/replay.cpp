// SPDX-License-Identifier: Apache-2.0
#include "search/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "search/engine.hpp"
#include "search/replay_parts.hpp"

namespace ke {
namespace {

// What the replay cannot know is in other runs.
Result<void> stands_alone(const Recording& recording) {
  for (const auto& [id, node] : recording.nodes) {
    if (node.proposer != "history") continue;
    return Error{Errc::invalid,
                 fmt::format("node {} came from an earlier run, so this run cannot be replayed by "
                             "itself; record one in a fresh workspace",
                             id.value)};
  }
  for (const auto& [id, evaluation] : recording.evaluations) {
    if (!evaluation.reused_from) continue;
    return Error{Errc::invalid,
                 fmt::format("node {} was judged in an earlier run, so this run cannot be replayed "
                             "by itself; record one in a fresh workspace",
                             evaluation.node.value)};
  }
  return {};
}

Result<SearchOptions> options_of(const Recording& recording) {
  SearchOptions options = TRY(decode_search_options(TRY(parse_json(recording.run.config))));
  options.history_seeds = 0;
  options.time_limit = Milliseconds{0};  // the recording says where the run ended
  options.stop_near_floor = false;
  for (const auto& [id, node] : recording.nodes) {
    if (node.kind == NodeKind::seed) {
      options.seeds.push_back({node.note, node.source, node.proposer, node.plan});
    }
  }
  return options;
}

ReplayReport report_of(const Recording& recording) {
  ReplayReport report;
  report.nodes = static_cast<int64_t>(recording.nodes.size());
  report.prompts = static_cast<int64_t>(recording.prompts.size());
  report.answers = static_cast<int64_t>(recording.answers.size());
  report.evaluations = std::ranges::count_if(recording.evaluations, [](const auto& entry) {
    return entry.second.effort == enum_name(Effort::screen);
  });
  return report;
}

}  // namespace

Result<ReplayReport> replay(const Recording& recording, const ReplayDependencies& dependencies) {
  TRY(stands_alone(recording));
  const SearchOptions options = TRY(options_of(recording));
  replay_parts::Cursor cursor(recording);
  replay_parts::ComparingStore store(cursor);
  replay_parts::RecordedModels models(cursor, dependencies.about.models);
  replay_parts::RecordedPace pace(cursor);
  replay_parts::RecordedEvaluator evaluator(recording);
  replay_parts::RecordedGround ground(cursor);
  const std::unique_ptr<ModelTasks> tasks = dependencies.tasks(ground);
  const std::vector<const Problem*> cases = several_cases(dependencies.about);
  ExperienceGraph graph(store);
  os::FakeClock clock;
  const SearchDependencies search{.clock = clock,
                                  .evaluator = evaluator,
                                  .graph = graph,
                                  .target = dependencies.target,
                                  .target_name = recording.run.scope.target,
                                  .conditions = dependencies.about.conditions,
                                  .machine = dependencies.about.machine,
                                  .problem = dependencies.about.cases.front(),
                                  .cases = cases,
                                  .programs = dependencies.programs,
                                  .proposers = dependencies.proposers,
                                  .models = &models,
                                  .tasks = tasks.get(),
                                  .pace = &pace,
                                  .events = dependencies.events,
                                  .stop = cursor.end_token()};
  std::unique_ptr<Engine> engine = TRY(Engine::create(search, options));
  TRY(engine->start());
  TRY(engine->loop());
  TRY(engine->hang_up());  // answers that came in as the run ended
  if (!cursor.at_end()) return cursor.stuck();
  return report_of(recording);
}

}  // namespace ke
