// SPDX-License-Identifier: Apache-2.0
#include "app/suite.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "app/suite_report.hpp"
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

// "9_x" before "10_a": digits compare as numbers.
bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (std::isdigit(static_cast<unsigned char>(a[i])) &&
        std::isdigit(static_cast<unsigned char>(b[j]))) {
      const size_t ia = std::min(a.find_first_not_of("0123456789", i), a.size());
      const size_t jb = std::min(b.find_first_not_of("0123456789", j), b.size());
      const std::string x = a.substr(i, ia - i), y = b.substr(j, jb - j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = ia, j = jb;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
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
  // A line cut by a kill is dropped: its problem runs again.
  const size_t whole = text.find_last_of('\n');
  text.resize(whole == std::string::npos ? 0 : whole + 1);
  return text;
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
  std::sort(problems.begin(), problems.end(), [](const SuiteProblem& a, const SuiteProblem& b) {
    return natural_less(a.name, b.name);
  });
  return problems;
}

Result<std::vector<OptimizeReport>> run_suite(const SuiteRequest& request, Workspace& workspace,
                                              EventSink& events, std::stop_token stop) {
  const std::vector<SuiteProblem> problems = TRY(find_problems(request));
  std::string text = TRY(existing_results(request.out).context("the results"));
  if (!text.empty() && !request.resume) {
    return Error{Errc::conflict, fmt::format("{} already holds results; add --resume to go on with "
                                             "them or choose another --out.",
                                             request.out)};
  }
  std::set<std::string> done;
  for (const OptimizeReport& row : TRY(parse_suite_results(text).context(request.out))) {
    if (row.target == request.session.target && row.error.empty()) done.insert(row.problem);
  }
  int64_t position = 0;
  for (const SuiteProblem& problem : problems) {
    ++position;
    if (stop.stop_requested()) break;
    if (done.contains(problem.name)) continue;
    events.emit(
        "stage",
        {{"what", fmt::format("problem {} of {}: {}", position, problems.size(), problem.name)}});
    OptimizeRequest one{.session = request.session, .search = request.search};
    one.session.problem_path = problem.path;
    one.session.problem_name = problem.name;
    auto outcome = optimize(one, workspace, events, stop);
    if (stop.stop_requested()) break;  // a cut-short problem runs again with --resume
    const OptimizeReport row = outcome ? *outcome : failed_row(problem, request, outcome.error());
    text += dump_json(encode(row)) + "\n";
    TRY(os::write_file_atomically(request.out, text).context("the results"));
  }
  return parse_suite_results(text);
}

}  // namespace ke::app
