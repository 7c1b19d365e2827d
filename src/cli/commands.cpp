// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"

#include <fmt/format.h>

#include <charconv>

#include "app/doctor.hpp"
#include "app/export.hpp"
#include "app/kept_kernels.hpp"
#include "app/optimize.hpp"
#include "app/suite.hpp"
#include "app/suite_jobs.hpp"
#include "app/suite_report.hpp"
#include "base/json.hpp"
#include "cli/convert.hpp"
#include "cli/results.hpp"
#include "domain/limits.hpp"
#include "graph/graph.hpp"
#include "os/file_system.hpp"

namespace ke::cli {
namespace {

using app::Access;
using app::Workspace;

constexpr int kNotAccepted = 1;
constexpr int64_t kKeptMax = 8;  // of a problem and target, from files of kept kernels

int show(const app::OptimizeReport& report, bool json) {
  print(json ? dump_json(encode(report)) + "\n" : optimize_text(report));
  return report.node != 0 ? kDone : kNotAccepted;
}

// `verify` and `bench`.
template <class Arguments>
Result<int> judge_kernel(const Arguments& arguments, bool measure,
                         const Environment& environment) {
  app::JudgeRequest request;
  request.session = TRY(session_options(arguments.judge, arguments.problem));
  request.kernel_path = arguments.kernel;
  request.measure = measure;
  request.profile = arguments.profile;
  Workspace workspace = TRY(Workspace::open(arguments.judge.workspace, Access::write));
  const app::JudgeReport report = TRY(app::judge(request, workspace, environment.events));
  print(arguments.judge.json ? dump_json(encode(report)) + "\n" : judge_text(report));
  return report.evaluation.verdict == Verdict::accepted ? kDone : kNotAccepted;
}

Result<std::vector<int>> parse_levels(const std::string& text) {
  std::vector<int> levels;
  for (const std::string& part : split_commas(text)) {
    int level = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, level);
    if (error != std::errc() || rest != end || level < 1) {
      return Error{Errc::invalid, fmt::format("'{}' is not a level; write --levels as 1,2.", part)};
    }
    levels.push_back(level);
  }
  return levels;
}

}  // namespace

Result<int> run_command(const OptimizeArguments& arguments, const Environment& environment) {
  app::OptimizeRequest request;
  request.session = TRY(session_options(arguments.judge, arguments.problem));
  request.search = TRY(search_options(arguments.search));
  request.out = arguments.out;
  Workspace workspace = TRY(Workspace::open(arguments.judge.workspace, Access::write));
  return show(TRY(app::optimize(request, workspace, environment.events, environment.stop)),
              arguments.judge.json);
}

Result<int> run_command(const VerifyArguments& arguments, const Environment& environment) {
  return judge_kernel(arguments, false, environment);
}

Result<int> run_command(const BenchArguments& arguments, const Environment& environment) {
  return judge_kernel(arguments, true, environment);
}

Result<int> run_command(const SuiteRunArguments& arguments, const Environment& environment) {
  app::SuiteRequest request;
  request.suite = arguments.suite;
  request.levels = TRY(parse_levels(arguments.levels));
  for (const std::string& group : arguments.select) {
    for (std::string& glob : split_commas(group)) request.select.push_back(std::move(glob));
  }
  request.session = TRY(session_options(arguments.judge, ""));
  request.search = TRY(search_options(arguments.search));
  request.out = arguments.out;
  request.resume = arguments.resume;
  request.judge_only = arguments.judge_only;
  for (const std::string& file : arguments.kernels) {
    for (auto& kernel : TRY(app::read_kept_kernels(file))) {
      request.kernels.push_back(std::move(kernel));
    }
  }
  request.kernels = app::best_kernels(std::move(request.kernels), kKeptMax);
  request.mixed = arguments.is_job;
  request.resume |= arguments.is_job;
  TRY(app::find_problems(request));  // before a workspace is made for nothing
  Workspace workspace = TRY(Workspace::open(arguments.judge.workspace,
                                            arguments.is_job ? Access::joined : Access::write));
  const bool alone = arguments.is_job || arguments.jobs == 1;
  const auto rows =
      TRY(alone ? app::run_suite(request, workspace, environment.events, environment.stop)
                : app::run_suite_jobs(request, arguments.jobs, kJobMarker, workspace,
                                      environment.events, environment.stop));
  if (arguments.judge.json) {
    for (const auto& row : rows) print(dump_json(encode(row)) + "\n");
  } else {
    print(app::suite_text(rows));
  }
  const app::SuiteSummary summary = app::summarize(rows);
  return summary.accepted == summary.problems ? kDone : kNotAccepted;
}

Result<int> run_command(const SuiteReportArguments& arguments, const Environment&) {
  std::vector<app::OptimizeReport> all;
  for (const std::string& file : arguments.results) {
    const std::string text = TRY(os::read_file(file, 256_MiB).context("the results"));
    for (app::OptimizeReport& row : TRY(app::parse_suite_results(text).context(file))) {
      all.push_back(std::move(row));
    }
  }
  const auto rows = app::best_of_each_problem(all);
  print(app::suite_text(rows));
  if (!arguments.html.empty()) {
    TRY(os::write_file_atomically(arguments.html, app::suite_html(rows)).context("the page"));
  }
  return kDone;
}

Result<int> run_command(const SuiteKeepArguments& arguments, const Environment&) {
  Workspace workspace = TRY(Workspace::open(arguments.workspace, Access::read));
  const GraphReader graph(workspace.store());
  const int64_t held = TRY(app::keep_kernels(graph, arguments.out, arguments.count));
  print(fmt::format("{} holds {} kernels.\n", arguments.out, held));
  return kDone;
}

Result<int> run_command(const ResumeArguments& arguments, const Environment& environment) {
  if (!os::exists(arguments.judge.workspace)) {
    return Error{Errc::invalid, fmt::format("there is no workspace {}; name one with --workspace.",
                                            arguments.judge.workspace)};
  }
  Workspace workspace = TRY(Workspace::open(arguments.judge.workspace, Access::write));
  return show(TRY(app::resume(arguments.run, arguments.out, workspace, environment.events,
                              environment.stop)),
              arguments.judge.json);
}

Result<int> run_command(const ExportArguments& arguments, const Environment& environment) {
  Workspace workspace = TRY(Workspace::open(arguments.workspace, Access::read));
  print(TRY(app::export_node(NodeId{arguments.node}, arguments.as, arguments.out, workspace,
                             environment.events)));
  return kDone;
}

Result<int> run_command(const GraphArguments& arguments, const Environment&) {
  Workspace workspace = TRY(Workspace::open(arguments.workspace, Access::read));
  const GraphReader graph(workspace.store());
  switch (arguments.what) {
    case GraphArguments::What::ls:
      print(TRY(list_text(graph)));
      break;
    case GraphArguments::What::show:
      print(TRY(show_text(graph, NodeId{arguments.id})));
      break;
    case GraphArguments::What::lineage:
      print(TRY(lineage_text(graph, NodeId{arguments.id})));
      break;
    case GraphArguments::What::export_run: {
      RunId run{arguments.id};
      if (!run) run = TRY(graph.latest_run()).value_or(RunId{});
      const std::string text = dump_json(TRY(export_run(graph, run))) + "\n";
      if (arguments.out.empty())
        print(text);
      else
        TRY(os::write_file_atomically(arguments.out, text));
      break;
    }
  }
  return kDone;
}

Result<int> run_command(const TargetsArguments&, const Environment&) {
  for (const TargetInfo* info : all_targets()) {
    const auto toolchain = info->make()->toolchain();
    print(fmt::format("{:<8} {:<8} {}\n{:17} {}\n", info->name, info->dialect, info->description,
                      "", toolchain ? *toolchain : toolchain.error().message));
    if (info->device == nullptr) continue;
    const auto device = info->device();
    print(fmt::format("{:17} {}\n", "", device ? *device : device.error().message));
  }
  return kDone;
}

namespace {

Result<int> examine_judge(bool json) {
  const app::JudgeExamination examination =
      TRY(app::examine_judge([&](const SelfTestOutcome& outcome) {
        if (!json) print(app::outcome_text(outcome));
      }));
  print(json
            ? dump_json(encode(examination)) + "\n"
            : fmt::format("\n{} kernels, {} placed wrong. Rooms: {}.\n",
                          examination.outcomes.size(), examination.wrong, examination.protections));
  return examination.wrong == 0 ? kDone : kNotAccepted;
}

}  // namespace

Result<int> run_command(const DoctorArguments& arguments, const Environment&) {
  if (arguments.judge) return examine_judge(arguments.json);
  const app::DoctorReport report = TRY(app::examine_machine(
      std::filesystem::path(arguments.workspace) / "cache", arguments.remeasure));
  print(arguments.json ? dump_json(encode(report)) + "\n" : app::doctor_text(report));
  return report.usable ? kDone : kNotAccepted;
}

Result<int> run_command(const HelpText& help, const Environment&) {
  print(help.text);
  return kDone;
}

}  // namespace ke::cli
