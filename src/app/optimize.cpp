// SPDX-License-Identifier: Apache-2.0
#include "app/optimize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/distill.hpp"
#include "app/ground.hpp"
#include "app/knowledge.hpp"
#include "app/tools.hpp"
#include "base/json.hpp"
#include "domain/limits.hpp"
#include "os/file_system.hpp"
#include "search/model_options.hpp"

namespace ke::app {
namespace {

// "accepted" when there is a best, else the most frequent rejection, else "none".
std::string overall_verdict(const SearchResult& result) {
  if (result.best) return std::string(enum_name(Verdict::accepted));
  const auto most =
      std::max_element(result.verdicts.begin(), result.verdicts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == result.verdicts.end() ? "none" : std::string(enum_name(most->first));
}

Result<std::string> write_best(Session& session, NodeId best, const std::string& out,
                               const Workspace& workspace) {
  const NodeRow node = TRY(session.graph().node(best));
  std::filesystem::path path = out;
  if (out.empty()) {
    const BuildRecipe recipe = TRY(session.target().recipe(node.source));
    path =
        workspace.folder() / "kernels" / fmt::format("node{}_{}", best.value, recipe.source_name);
  }
  if (path.has_parent_path()) TRY(os::make_directories(path.parent_path()));
  TRY(os::write_file_atomically(path, node.source).context("the best kernel"));
  return path.string();
}

void give_ground(ModelSet* models, Session& session, const Workspace& workspace) {
  if (models == nullptr) return;
  models->draw_on(
      workspace_ground(workspace.folder(), session.target_name(), &session.evaluator(),
                       models->take_vectorizer(workspace.folder())));
}

// The most that a kernel of class library won against the better baseline in this run.
Result<std::optional<double>> best_of_library(const GraphReader& graph, RunId run) {
  std::map<NodeId, double> figures;  // the last of a node's counts: it is the confirmed one
  for (const NodeEvaluation& one : TRY(graph.evaluations_of_run(run))) {
    if (one.evaluation.kernel_class != "library") continue;
    if (const auto figure = fitness(one.evaluation)) figures[one.node] = *figure;
  }
  std::optional<double> best;
  for (const auto& [node, figure] : figures) best = std::max(best.value_or(0), figure);
  return best;
}

Result<OptimizeReport> report_of(const SearchResult& result, Session& session,
                                 const SearchOptions& search_options, const std::string& out,
                                 const Workspace& workspace) {
  OptimizeReport report;
  report.problem = session.problem().name;
  report.target = session.target_name();
  report.verdict = overall_verdict(result);
  report.floor_ns = session.evaluator().floor_ns();
  report.node = result.best.value;
  report.run = result.run.value;
  report.steps = result.steps;
  report.evaluated = result.evaluated;
  for (const auto& [verdict, count] : result.verdicts) {
    if (verdict == Verdict::accepted)
      report.accepted = count;
    else
      report.rejected[std::string(enum_name(verdict))] = count;
  }
  report.precision = enum_name(session.options().precision);
  report.seed = search_options.seed;
  if (!search_options.models.names.empty()) {
    report.models = ModelCosts{.calls = result.models.calls,
                               .tokens = result.models.tokens,
                               .usd = result.models.usd,
                               .kernels = result.models.kernels,
                               .accepted = result.models.accepted,
                               .sub_agents = result.models.sub_agents};
  }
  report.ended = enum_name(result.reason);
  if (result.evaluation) report.fill_figures(*result.evaluation);
  report.form_speedup = TRY(best_of_library(session.graph(), result.run));
  if (result.best) report.kernel_path = TRY(write_best(session, result.best, out, workspace));
  return report;
}

// Lessons of a run that has ended. A run is not lost because they cannot be kept.
void learn(Session& session, const Workspace& workspace, RunId run, EventSink& events) {
  const auto keep = [&]() -> Result<int64_t> {
    // With several shape cases a node has several plans; lessons are about one.
    if (session.programs().size() != 1) return int64_t{0};
    const auto skills = TRY(distill(session.graph(), run, session.programs().front()));
    return propose_skills(skills, knowledge_folder(workspace.folder()));
  };
  const Result<int64_t> count = keep();
  if (!count) {
    events.emit("stage",
                {{"what", "no lessons were kept: " + count.error().to_string()}});
  } else if (*count > 0) {
    events.emit("stage", {{"what", fmt::format("{} lessons proposed; `kernelevolve kb review` "
                                               "shows them",
                                               *count)}});
  }
}

// What the search begins with: kept kernels of this very text of the problem, then the library's
// forms.
Result<SearchOptions> with_seeds(const OptimizeRequest& request, Session& session,
                                 EventSink& events) {
  SearchOptions options = request.search;
  int64_t others = 0;
  for (const KeptKernel& kept : request.kernels) {
    if (kept.problem_digest != session.problem().digest) {
      ++others;
      continue;
    }
    options.seeds.push_back({.name = fmt::format("kept, {} at {:.2f}", kept.kernel_class,
                                                 kept.fitness),
                             .source = kept.source,
                             .proposer = kept.proposer,
                             .plan = kept.plan});
  }
  if (others > 0) {
    events.emit("stage", {{"what", fmt::format("{}: {} kept kernels are of another text of the "
                                               "problem and are left out",
                                               session.problem().name, others)}});
  }
  if (!request.judge_only) {
    for (SeedKernel& seed : session.seed_forms(events)) options.seeds.push_back(std::move(seed));
    return options;
  }
  if (options.seeds.empty()) {
    return Error{Errc::not_found, "no kernel was kept of this text of the problem; search for one "
                                  "with `kernelevolve suite run` without --judge-only."};
  }
  options.steps = std::ssize(options.seeds);
  options.history_seeds = 0;
  options.drafts = 0;
  options.reuse = false;
  return options;
}

double seconds_since(os::Clock& clock, Nanoseconds start) {
  return std::chrono::duration<double>(clock.now() - start).count();
}

// What resume needs beyond the search's own options is kept as a file beside the graph, one a run.
Json encode_session(const SessionOptions& options) {
  return {{"problem_path", std::filesystem::absolute(options.problem_path).string()},
          {"problem_name", options.problem_name},
          {"target", options.target},
          {"precision", enum_name(options.precision)},
          {"dtype", options.dtype},
          {"sandbox_required", options.sandbox_required},
          {"libraries", options.libraries},
          {"determinism", enum_name(options.determinism)},
          {"threads", options.threads}};
}

Result<SessionOptions> decode_session(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the run's session"));
  SessionOptions options;
  options.problem_path = TRY(fields.get<std::string>("problem_path"));
  options.problem_name = TRY(fields.get<std::string>("problem_name"));
  options.target = TRY(fields.get<std::string>("target"));
  const auto precision = parse_enum<Precision>(TRY(fields.get<std::string>("precision")));
  if (!precision) return Error{Errc::invalid, "the run's session has an unknown precision"};
  options.precision = *precision;
  options.dtype = TRY(fields.get<std::string>("dtype"));
  options.sandbox_required = TRY(fields.get<bool>("sandbox_required"));
  options.libraries = TRY(fields.get_or<std::string>("libraries", "none"));
  const auto determinism =
      parse_enum<Determinism>(TRY(fields.get_or<std::string>("determinism", "bitwise")));
  if (!determinism) return Error{Errc::invalid, "the run's session has an unknown determinism"};
  options.determinism = *determinism;
  options.threads = TRY(fields.get<int32_t>("threads"));
  TRY(fields.finish());
  return options;
}

std::filesystem::path session_note(const Workspace& workspace, int64_t run) {
  return workspace.folder() / "sessions" / fmt::format("run{}.json", run);
}

// Passes events on, and keeps the session's options once the run has a number.
class NotingEvents final : public EventSink {
 public:
  NotingEvents(EventSink& next, const SessionOptions& options, const Workspace& workspace)
      : next_(next), options_(options), workspace_(workspace) {}

  void emit(std::string_view name, const Json& fields) override {
    if (name == "run.started") {
      const int64_t run = fields.value("run", int64_t{0});
      written_ = os::write_file_atomically(session_note(workspace_, run),
                                           dump_json(encode_session(options_)));
    }
    next_.emit(name, fields);
  }
  Result<void> take() { return std::move(written_); }

 private:
  EventSink& next_;
  const SessionOptions& options_;
  const Workspace& workspace_;
  Result<void> written_;
};

}  // namespace

Result<OptimizeReport> optimize(const OptimizeRequest& request, Workspace& workspace,
                                EventSink& events, std::stop_token stop) {
  os::SystemClock clock;
  const Nanoseconds start = clock.now();
  std::unique_ptr<ModelSet> models;  // first: what is wrong with them is known at once
  if (!request.search.models.names.empty()) models = TRY(ModelSet::open(request.search.models));
  auto session = TRY(Session::open(request.session, workspace, events));
  give_ground(models.get(), *session, workspace);
  TRY(os::make_directories(workspace.folder() / "sessions"));
  NotingEvents noting(events, session->options(), workspace);
  const SearchOptions options = TRY(with_seeds(request, *session, events));
  const SearchResult result =
      TRY(search(session->dependencies(noting, std::move(stop), models.get()), options));
  TRY(noting.take());
  learn(*session, workspace, result.run, events);
  OptimizeReport report = TRY(report_of(result, *session, request.search, request.out, workspace));
  report.wall_s = seconds_since(clock, start);
  return report;
}

Result<SessionOptions> session_of_run(const Workspace& workspace, RunId run) {
  const std::string text =
      TRY(os::read_file(session_note(workspace, run.value), 1_MiB).context("the run's session"));
  return decode_session(TRY(parse_json(text)));
}

Result<OptimizeReport> resume(int64_t run, const std::string& out, Workspace& workspace,
                              EventSink& events, std::stop_token stop) {
  os::SystemClock clock;
  const Nanoseconds start = clock.now();
  const GraphReader graph(workspace.store());
  RunId id{run};
  if (!id) {
    const std::optional<RunId> latest = TRY(graph.latest_run());
    if (!latest) {
      return Error{Errc::not_found,
                   "there is no run to resume; start one with `kernelevolve optimize`."};
    }
    id = *latest;
  }
  const RunRow row = TRY(graph.run(id));
  const ProblemRow problem = TRY(graph.problem(row.scope.problem));
  const SearchOptions search_options = TRY(run_options(graph, id));
  const SessionOptions options = TRY(session_of_run(workspace, id));
  std::unique_ptr<ModelSet> models;
  if (!search_options.models.names.empty()) {
    models = TRY(ModelSet::open(search_options.models, TRY(spending_of(graph, id))));
  }
  auto session = TRY(Session::open(options, workspace, events));
  if (session->problem().digest != problem.digest) {
    return Error{Errc::conflict, fmt::format("{} has changed since run {} began; start a new run "
                                             "with `kernelevolve optimize`.",
                                             options.problem_path, id.value)};
  }
  give_ground(models.get(), *session, workspace);
  const SearchResult result = TRY(ke::resume(
      session->dependencies(events, std::move(stop), models.get()), id, search_options));
  learn(*session, workspace, result.run, events);
  OptimizeReport report = TRY(report_of(result, *session, search_options, out, workspace));
  report.wall_s = seconds_since(clock, start);
  return report;
}

Result<JudgeReport> judge(const JudgeRequest& request, Workspace& workspace, EventSink& events) {
  os::SystemClock clock;
  const Nanoseconds start = clock.now();
  const Limits limits;
  const std::string source =
      TRY(os::read_file(request.kernel_path, limits.source_bytes_max).context("the kernel"));
  auto session = TRY(Session::open(request.session, workspace, events));
  Evaluator& evaluator = session->evaluator();
  const Artifact artifact = TRY(evaluator.build(source));
  JudgeOptions options;
  options.effort = request.measure ? Effort::confirm : Effort::full;
  options.measure = request.measure;
  options.tell_values = !request.measure;
  JudgeReport report;
  report.problem = session->problem().name;
  report.target = session->target_name();
  report.kernel_path = request.kernel_path;
  report.precision = enum_name(request.session.precision);
  report.floor_ns = evaluator.floor_ns();
  report.evaluation =
      artifact.failure ? *artifact.failure : TRY(evaluator.judge(artifact, options));
  if (request.profile && report.evaluation.verdict == Verdict::accepted) {
    report.profile = TRY(profile_accepted(evaluator, source));
  }
  report.wall_s = seconds_since(clock, start);
  return report;
}

Json encode(const JudgeReport& report) {
  OptimizeReport shape;  // the same object, as far as it applies
  shape.problem = report.problem;
  shape.target = report.target;
  shape.verdict = enum_name(report.evaluation.verdict);
  shape.floor_ns = report.floor_ns;
  shape.kernel_path = report.kernel_path;
  shape.precision = report.precision;
  shape.evaluated = 1;
  const bool accepted = report.evaluation.verdict == Verdict::accepted;
  if (accepted)
    shape.accepted = 1;
  else
    shape.rejected[shape.verdict] = 1;
  shape.wall_s = report.wall_s;
  shape.fill_figures(report.evaluation);
  Json json = encode(shape);
  json["detail"] = report.evaluation.detail;
  json["diagnostics"] = report.evaluation.diagnostics;
  json["protections"] = report.evaluation.protections;
  json["evaluation"] = encode(report.evaluation);
  if (report.profile) json["profile"] = encode(*report.profile);
  for (const char* key : {"node", "run", "steps", "seed", "ended"}) json.erase(key);
  return json;
}

}  // namespace ke::app
