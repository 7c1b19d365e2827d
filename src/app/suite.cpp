// SPDX-License-Identifier: Apache-2.0
#include "app/suite.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "app/json_lines.hpp"
#include "app/natural_order.hpp"
#include "app/suite_report.hpp"
#include "base/digest.hpp"
#include "base/json.hpp"
#include "os/file_system.hpp"

namespace ke::app {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kResultsBytesMax = 256_MiB;

// The level number of a folder name "level3", or 0.
int level_of(const std::string& name) {
  int level = 0;
  if (name.rfind("level", 0) != 0) return 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 5, end, level);
  return error == std::errc() && rest == end ? level : 0;
}

Result<fs::path> suite_root(const std::string& suite) {
  if (suite == "examples" && !os::exists("examples")) {
    std::vector<fs::path> places = {fs::current_path() / "suites/examples"};
    if (const auto binary = os::own_executable()) {
      places.push_back(binary->parent_path().parent_path() / "suites/examples");
    }
    for (const fs::path& place : places) {
      if (os::exists(place)) return place;
    }
  }
  if (!fs::is_directory(suite)) {
    return Error{Errc::invalid,
                 fmt::format("{} is not a folder of problems, nor the name of a bundled suite "
                             "(examples).",
                             suite)};
  }
  const fs::path inner = fs::path(suite) / "KernelBench";
  return fs::is_directory(inner / "level1") ? inner : fs::path(suite);
}

Result<void> add_folder(const fs::path& folder, const std::string& prefix,
                        std::vector<SuiteProblem>& problems) {
  for (const std::string& name : TRY(os::list_directory(folder))) {
    const fs::path file = folder / name;
    if (file.extension() != ".py" || name.rfind("__", 0) == 0) continue;
    problems.push_back({prefix + file.stem().string(), file.string()});
  }
  return {};
}

bool selected(const SuiteRequest& request, const std::string& name) {
  if (request.select.empty()) return true;
  return std::any_of(request.select.begin(), request.select.end(), [&](const std::string& glob) {
    return fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  });
}

Result<std::string> existing_results(const std::string& path) {
  if (!os::exists(path)) return std::string();
  std::string text = TRY(os::read_file(path, kResultsBytesMax));
  text.resize(whole_lines(text).size());  // the problem of a line cut by a kill runs again
  return text;
}

// Neighbours of a suite are alike in size: large ones meet small ones in an order of their names'
// digests.
void scatter(std::vector<SuiteProblem>& problems) {
  std::ranges::sort(problems, {}, [](const SuiteProblem& problem) {
    return digest_of(problem.name).short_hex();
  });
}

Result<std::set<std::string>> done_problems(const SuiteRequest& request) {
  const std::string text = TRY(existing_results(request.out).context("the results"));
  std::set<std::string> done;
  for (const OptimizeReport& row : TRY(parse_suite_results(text).context(request.out))) {
    if (row.target == request.session.target && is_final(row)) done.insert(row.problem);
  }
  return done;
}

// Others append to the same file.
Result<void> append_row(const std::string& out, const OptimizeReport& row) {
  const os::FileLock mine = TRY(os::FileLock::lock(out + ".lock").context("the results"));
  const std::string text = TRY(existing_results(out).context("the results"));
  TRY(os::write_file_atomically(out, text + dump_json(encode(row)) + "\n").context("the results"));
  return {};
}

// Leaves those problems of which a kernel was kept for this target.
Result<void> leave_kept(const SuiteRequest& request, std::vector<SuiteProblem>& problems) {
  std::erase_if(problems, [&](const SuiteProblem& problem) {
    return kernels_for(request.kernels, problem.name, request.session.target, true).empty();
  });
  if (!problems.empty()) return {};
  return Error{Errc::invalid, fmt::format("no kernel for {} is the best one kept of any selected "
                                          "problem; check --kernels, --target and --select.",
                                          request.session.target)};
}

OptimizeReport failed_row(const SuiteProblem& problem, const SuiteRequest& request,
                          const Error& error) {
  OptimizeReport row;
  row.problem = problem.name;
  row.target = request.session.target;
  row.verdict = "failed";
  row.precision = enum_name(request.session.precision);
  row.seed = request.search.seed;
  row.error = error.to_string();
  return row;
}

}  // namespace

Result<std::vector<SuiteProblem>> find_problems(const SuiteRequest& request) {
  const fs::path root = TRY(suite_root(request.suite));
  std::vector<SuiteProblem> found;
  bool has_levels = false;
  for (const std::string& name : TRY(os::list_directory(root))) {
    const int level = level_of(name);
    if (level == 0 || !fs::is_directory(root / name)) continue;
    has_levels = true;
    const auto& wanted = request.levels;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), level) == wanted.end()) continue;
    TRY(add_folder(root / name, name + "/", found));
  }
  if (!has_levels) TRY(add_folder(root, "", found));
  std::vector<SuiteProblem> problems;
  for (SuiteProblem& problem : found) {
    if (selected(request, problem.name)) problems.push_back(std::move(problem));
  }
  if (problems.empty()) {
    return Error{Errc::invalid, fmt::format("no problem of {} is selected; check --levels and "
                                            "--select (names look like level1/19_ReLU).",
                                            request.suite)};
  }
  if (request.judge_only) TRY(leave_kept(request, problems));
  std::sort(problems.begin(), problems.end(), [](const SuiteProblem& a, const SuiteProblem& b) {
    return natural_less(a.name, b.name);
  });
  return problems;
}

bool is_final(const OptimizeReport& row) {
  return row.error.empty() && row.ended != enum_name(EndReason::stopped);
}

Result<std::vector<OptimizeReport>> run_suite(const SuiteRequest& request, Workspace& workspace,
                                              EventSink& events, std::stop_token stop) {
  std::vector<SuiteProblem> problems = TRY(find_problems(request));
  if (request.mixed) scatter(problems);
  const fs::path claims = workspace.folder() / "claims";
  TRY(os::make_directories(claims));
  if (!request.resume && !TRY(existing_results(request.out)).empty()) {
    return Error{Errc::conflict, fmt::format("{} already holds results; add --resume to go on with "
                                             "them or choose another --out.",
                                             request.out)};
  }
  int64_t position = 0;
  for (const SuiteProblem& problem : problems) {
    ++position;
    if (stop.stop_requested()) break;
    const auto claim = os::FileLock::try_lock(claims / digest_of(problem.name).short_hex());
    if (!claim && claim.error().code == Errc::conflict) continue;
    if (!claim) return claim.error();
    if (TRY(done_problems(request)).contains(problem.name)) continue;
    events.emit(
        "stage",
        {{"what", fmt::format("problem {} of {}: {}", position, problems.size(), problem.name)}});
    OptimizeRequest one{.session = request.session, .search = request.search};
    one.session.problem_path = problem.path;
    one.session.problem_name = problem.name;
    one.kernels = kernels_for(request.kernels, problem.name, request.session.target,
                              request.judge_only);
    one.judge_only = request.judge_only;
    const auto outcome = optimize(one, workspace, events, stop);
    const OptimizeReport row = outcome ? *outcome : failed_row(problem, request, outcome.error());
    if (stop.stop_requested() && row.node == 0) break;  // nothing to say of it yet
    TRY(append_row(request.out, row));
  }
  return parse_suite_results(TRY(existing_results(request.out)));
}

}  // namespace ke::app
