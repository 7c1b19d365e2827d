// SPDX-License-Identifier: Apache-2.0
#include "app/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/ground.hpp"
#include "app/session.hpp"
#include "base/json.hpp"
#include "ir/lower/lower.hpp"
#include "llm/exchange.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

// A run's description with its problem's file where it can be read.
struct About {
  os::TemporaryDirectory folder;
  RunDescription run;
  std::vector<ir::Program> programs;  // one a shape case, or none
};

Result<About> about_run(const std::string& text) {
  if (text.empty()) {
    return Error{Errc::conflict,
                 "the run was recorded by a version that kept no description of its problem"};
  }
  About about{TRY(os::TemporaryDirectory::create()),
              TRY(decode_run_description(TRY(parse_json(text)))),
              {}};
  const std::string file = std::filesystem::path(about.run.cases.front().path).filename().string();
  std::string readable;
  if (!about.run.source.empty() && !file.empty()) {
    const std::filesystem::path path = about.folder.path() / file;
    TRY(os::write_file_atomically(path, about.run.source));
    readable = path.string();
  }
  for (Problem& problem : about.run.cases) {
    problem.path = readable;
    auto program = problem.graph ? ir::lower(*problem.graph)
                                 : Result<ir::Program>(Error{Errc::unavailable, "no graph"});
    if (program) about.programs.push_back(std::move(*program));
  }
  if (about.programs.size() < about.run.cases.size()) about.programs.clear();
  return about;
}

Result<SessionOptions> session_options(const Recording& recording, const About& about) {
  const Conditions& conditions = about.run.conditions;
  SessionOptions options;
  options.problem_path = about.run.cases.front().path;
  options.problem_name = recording.problem;
  options.target = recording.run.scope.target;
  options.threads = about.run.machine.threads;
  options.precision = conditions.precision;
  options.dtype = conditions.dtype;
  options.libraries = conditions.libraries;
  options.determinism = conditions.determinism;
  if (options.problem_path.empty()) {
    return Error{Errc::invalid, "the recording lacks the problem's file, so nothing can be judged "
                                "again"};
  }
  return options;
}

Result<std::vector<OtherVerdict>> judge_recording(const ReplayRequest& request,
                                                  const Recording& recording, const About& about,
                                                  EventSink& events, std::stop_token stop) {
  SessionOptions options = TRY(session_options(recording, about));
  options.threads = std::min(options.threads, available_threads());
  Workspace workspace = TRY(Workspace::open(request.workspace, Access::write));
  auto session = TRY(Session::open(options, workspace, events));
  if (session->problem().digest != recording.problem_digest) {
    return Error{Errc::conflict,
                 "the recording holds the problem's file but not its sidecar, which verdicts "
                 "depend on; only a problem without one can be judged again"};
  }
  return ke::judge_again(recording, session->evaluator(), events, std::move(stop));
}

std::unique_ptr<ModelTasks> recorded_tasks(GroundSource& ground) {
  return prompted_tasks({.ground = &ground});
}

}  // namespace

Result<ReplayResult> replay(const ReplayRequest& request, EventSink& events, std::stop_token stop) {
  const std::string text = TRY(os::read_file(request.recording, 1_GiB).context("the recording"));
  const Json json = TRY(parse_json(text).context(request.recording.string()));
  const Recording recording = TRY(decode_recording(json).context(request.recording.string()));
  const TargetInfo* info = TRY(target_named(recording.run.scope.target));
  const std::unique_ptr<Target> target = info->make();
  const About known = TRY(about_run(recording.run.description));
  ReplayResult result{.problem = recording.problem, .report = {}, .others = {}};
  NullEvents quiet;
  result.report = TRY(ke::replay(recording, {.target = *target,
                                             .about = known.run,
                                             .programs = known.programs,
                                             .tasks = recorded_tasks,
                                             .events = quiet}));
  if (!request.judge_again) return result;
  result.judged_again = true;
  result.others = TRY(judge_recording(request, recording, known, events, std::move(stop)));
  return result;
}

Result<std::string> prompt_text(NodeId id, Workspace& workspace) {
  const GraphReader graph(workspace.store());
  const NodeRow node = TRY(graph.node(id));
  if (node.prompt) {
    const PromptRow row = TRY(graph.exchange(node.prompt)).prompt;
    return llm::plain_text(TRY(llm::decode_request(TRY(parse_json(row.request)), row.stable)));
  }
  const RunRow run = TRY(graph.run(node.run));
  const About known = TRY(about_run(run.description));
  const std::unique_ptr<Target> target = TRY(target_named(run.scope.target))->make();
  const std::vector<const Problem*> cases = several_cases(known.run);
  ProposalContext context{.problem = known.run.cases.front(),
                          .cases = cases,
                          .programs = known.programs,
                          .target = *target,
                          .machine = known.run.machine,
                          .kind = NodeKind::mutate,
                          .parents = {},
                          .memory = Memory::parents,
                          .graph = graph,
                          .run = run.id,
                          .is_known = [](std::string_view) { return false; }};
  ParentView parent{.node = node, .evaluation = {}};
  if (auto verdict = TRY(graph.verdict_of(id))) parent.evaluation = std::move(verdict->evaluation);
  context.parents.push_back(std::move(parent));
  const auto ground = workspace_ground(workspace.folder(), run.scope.target, nullptr);
  const auto tasks = prompted_tasks({.ground = ground.get()});
  const auto task = TRY(tasks->make(context, ModelStyle::source, std::nullopt));
  if (!task) return Error{Errc::unavailable, "there is nothing to ask about this node"};
  return llm::plain_text(task->request);
}

}  // namespace ke::app
