// SPDX-License-Identifier: Apache-2.0
#include "app/workbench.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "domain/limits.hpp"
#include "os/file_system.hpp"
#include "propose/model/prompt.hpp"
#include "propose/model/text.hpp"
#include "search/description.hpp"

namespace ke::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kProblemBytesMax = 16_MiB;

// Of what PyTorch is about to read: the file, and its sidecar when there is one.
Result<Digest> contents_of(const fs::path& path) {
  const std::string text = TRY(os::read_file(path, kProblemBytesMax).context("the problem"));
  const auto sidecar = os::read_file(fs::path(path).replace_extension(".toml"), kProblemBytesMax);
  return digest_of(text + '\0' + sidecar.value_or(""));
}

// The baselines as they were last timed beside a kernel that was accepted; null before.
Json baselines_of(const std::optional<Judged>& best) {
  if (!best || !best->evaluation.measurement) return {};
  return encode(*best).at("baseline_ns");
}

Json case_of(const Problem& problem) {
  Json json{{"shapes", shapes_of(problem)}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  for (const TensorSpec& spec : problem.inputs) json["inputs"].push_back(encode(spec));
  for (const TensorSpec& spec : problem.outputs) json["outputs"].push_back(encode(spec));
  return json;
}

}  // namespace

Workbench::~Workbench() {
  // A run that is not ended shows as such; there is nobody left to tell.
  for (OpenProblem& one : open_) static_cast<void>(one.desk->close());
}

Result<Workspace*> Workbench::workspace() {
  if (!workspace_) workspace_ = TRY(Workspace::open(folder_, Access::write));
  return &*workspace_;
}

Result<GraphReader> Workbench::graph() { return GraphReader(TRY(workspace())->store()); }

Result<Workbench::OpenProblem*> Workbench::open(const std::string& problem_path,
                                                EventSink& events) {
  if (problem_path.empty() || !os::exists(problem_path)) {
    return Error{Errc::invalid, fmt::format("the problem file '{}' does not exist; name a PyTorch "
                                            "file in KernelBench's format.",
                                            problem_path)};
  }
  std::error_code ignored;
  fs::path path = fs::weakly_canonical(problem_path, ignored);
  if (path.empty()) path = fs::absolute(problem_path);
  const Digest contents = TRY(contents_of(path));
  for (auto one = open_.begin(); one != open_.end(); ++one) {
    if (one->path != path) continue;
    if (one->contents == contents) {
      open_.splice(open_.begin(), open_, one);
      return &open_.front();
    }
    TRY(one->desk->close());
    open_.erase(one);
    break;
  }
  Workspace* workspace = TRY(this->workspace());
  SessionOptions options = options_;
  options.problem_path = path.string();
  const Limits limits;
  while (static_cast<int32_t>(open_.size()) >= limits.open_problems_max) {
    TRY(open_.back().desk->close());
    open_.pop_back();
  }
  OpenProblem opened{.path = path, .contents = contents, .session = {}, .desk = {}};
  opened.session = TRY(Session::open(options, *workspace, events));
  Session& session = *opened.session;
  NullEvents quiet;
  const SearchDependencies about = session.dependencies(quiet, {});
  opened.desk = std::make_unique<SubmissionDesk>(
      DeskOptions{.graph = session.graph(),
                  .evaluator = session.evaluator(),
                  .clock = about.clock,
                  .scope = TRY(scope_of(about)),
                  .description = dump_json(encode(describe(about))),
                  .limits = limits});
  open_.push_front(std::move(opened));
  return &open_.front();
}

Result<SubmissionDesk*> Workbench::desk(const std::string& problem_path, EventSink& events) {
  return TRY(open(problem_path, events))->desk.get();
}

Result<ProblemSheet> Workbench::sheet(const std::string& problem_path, EventSink& events) {
  OpenProblem* opened = TRY(open(problem_path, events));
  Session& session = *opened->session;
  const Problem& problem = session.problem();
  NullEvents quiet;
  const SearchDependencies about = session.dependencies(quiet, {});
  const ProposalContext context{.problem = problem,
                                .cases = about.cases,
                                .programs = session.programs(),
                                .target = session.target(),
                                .machine = session.machine(),
                                .kind = NodeKind::draft,
                                .parents = {},
                                .memory = Memory::nothing,
                                .graph = session.graph(),
                                .run = {},
                                .is_known = {}};
  const std::string graph =
      problem.graph ? ir::print(*problem.graph)
                    : "There is no graph of operations: " + problem.graph_error + "\n";
  const std::optional<Judged> best = TRY(opened->desk->best());
  Json cases = Json::array();
  for (const Problem* one : session.cases()) cases.push_back(case_of(*one));
  ProblemSheet sheet;
  sheet.problem = fmt::format("{}\n{}", model::problem_section(context), model::fenced(graph));
  sheet.contract = model::contract_section(session.target());
  sheet.json = dump_json({{"problem", opened->path.string()},
                          {"name", problem.name},
                          {"target", session.target_name()},
                          {"precision", enum_name(session.options().precision)},
                          {"libraries", session.libraries()},
                          {"threads", session.machine().threads},
                          {"cases", std::move(cases)},
                          {"graph", graph},
                          {"flags", problem.flags},
                          {"floor_ns", session.evaluator().floor_ns()},
                          {"baseline_ns", baselines_of(best)},
                          {"best_node", best ? Json(best->node.value) : Json()}});
  return sheet;
}

}  // namespace ke::app
