// SPDX-License-Identifier: Apache-2.0
#include "app/suite_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/json_lines.hpp"
#include "app/natural_order.hpp"
#include "base/json.hpp"

namespace ke::app {
namespace {

// Flags that qualify the problem, not the measurement.
bool has_problem_flag(const OptimizeReport& row) {
  static constexpr std::string_view kProblemFlags[] = {"trivial", "foldable", "random"};
  return std::any_of(row.flags.begin(), row.flags.end(), [](const std::string& flag) {
    return std::find(std::begin(kProblemFlags), std::end(kProblemFlags), flag) !=
           std::end(kProblemFlags);
  });
}

bool has_flag(const OptimizeReport& row, std::string_view flag) {
  return std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end();
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string ratio(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}x", *value) : "-";
}

std::string duration(const std::optional<int64_t>& ns) {
  if (!ns) return "-";
  const double value = static_cast<double>(*ns);
  if (value < 1e6) return fmt::format("{:.1f} us", value / 1e3);
  return value < 1e9 ? fmt::format("{:.2f} ms", value / 1e6) : fmt::format("{:.2f} s", value / 1e9);
}

std::string floor_ratio(const OptimizeReport& row) {
  if (!row.time_ns || !row.floor_ns || *row.floor_ns <= 0) return "-";
  return fmt::format("{:.2f}",
                     static_cast<double>(*row.time_ns) / static_cast<double>(*row.floor_ns));
}

std::vector<std::string> cells_of(const OptimizeReport& row) {
  return {row.problem,
          row.target,
          row.verdict,
          ratio(row.speedup_vs_eager),
          ratio(row.speedup_vs_compile),
          ratio(row.speedup()),
          ratio(row.speedup_vs_library()),
          duration(row.time_ns),
          floor_ratio(row),
          fmt::format("{}", row.steps),
          row.kernel_class.empty() ? "-" : row.kernel_class,
          fmt::format("{}", fmt::join(row.flags, ","))};
}

const std::vector<std::string> kHeadings = {"problem",    "target",  "verdict",    "vs eager",
                                            "vs compile", "vs best", "vs library", "time",
                                            "x floor",    "steps",   "class",      "flags"};

// "level1" of "level1/19_ReLU"; empty for a flat name.
std::string level_of(const OptimizeReport& row) {
  const size_t slash = row.problem.find('/');
  return slash == std::string::npos ? "" : row.problem.substr(0, slash);
}

std::string level_line(const std::string& level, const SuiteSummary& summary) {
  std::string classes;
  for (const auto& [name, count] : summary.classes) {
    classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", count, name);
  }
  std::string devices;  // what only devices have
  if (summary.libraries > 0) {
    devices += fmt::format("against the library's fastest form {:.3f}x ({} problems); ",
                           summary.geomean_library, summary.libraries);
  }
  if (summary.graphs > 0) {
    devices += fmt::format("replayed graphs {:.3f}x ({}); ", summary.geomean_graph, summary.graphs);
  }
  return fmt::format(
      "{}: {} of {} accepted; against eager {:.3f}x (median {:.3f}x), against the better baseline "
      "{:.3f}x;\n  {}not slower than eager: {}.\n",
      level, summary.accepted, summary.problems, summary.geomean_eager, summary.median_eager,
      summary.geomean, devices, classes.empty() ? "none" : classes);
}

// A line a level, where there are several problems of a level.
std::string levels_text(const std::vector<OptimizeReport>& rows) {
  std::map<std::string, std::vector<OptimizeReport>> levels;
  for (const OptimizeReport& row : rows) {
    if (const std::string level = level_of(row); !level.empty()) levels[level].push_back(row);
  }
  std::string text;
  for (const auto& [level, inside] : levels) text += level_line(level, summarize(inside));
  return text;
}

std::string summary_text(const std::vector<OptimizeReport>& rows) {
  const SuiteSummary summary = summarize(rows);
  std::string text = fmt::format(
      "{} of {} problems accepted; {} could not be run; {} slower than eager (ties aside).\n",
      summary.accepted, summary.problems, summary.failed, summary.slower_eager);
  if (summary.accepted > 0) {
    text += fmt::format(
        "Speed-up over accepted problems, confirmed cold medians: geometric mean {:.3f}x against "
        "the better\nof eager and torch.compile (median {:.3f}x; {:.3f}x without flagged "
        "problems), "
        "{:.3f}x against eager,\n{:.3f}x against torch.compile.\n",
        summary.geomean, summary.median, summary.geomean_unflagged, summary.geomean_eager,
        summary.geomean_compile);
  }
  return text + levels_text(rows);
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '&')
      escaped += "&amp;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

}  // namespace

Result<std::vector<OptimizeReport>> parse_suite_results(std::string_view text) {
  std::map<std::pair<std::string, std::string>, size_t> position;
  std::vector<OptimizeReport> rows;
  TRY(each_json_line(text, [&](const Json& json) -> Result<void> {
    OptimizeReport row = TRY(decode_optimize_report(json));
    const auto [it, fresh] = position.try_emplace({row.problem, row.target}, rows.size());
    if (fresh)
      rows.push_back(std::move(row));
    else
      rows[it->second] = std::move(row);
    return {};
  }));
  return rows;
}

std::vector<OptimizeReport> best_of_each_problem(const std::vector<OptimizeReport>& rows) {
  const auto worth = [](const OptimizeReport& row) {
    return row.verdict == "accepted" ? 1 + row.speedup().value_or(0) : 0;
  };
  std::map<std::string, const OptimizeReport*> best;
  std::map<std::string, double> library;
  for (const OptimizeReport& row : rows) {
    const OptimizeReport*& chosen = best[row.problem];
    if (chosen == nullptr || worth(row) >= worth(*chosen)) chosen = &row;
    if (!row.form_speedup) continue;
    double& most = library[row.problem];
    most = std::max(most, *row.form_speedup);
  }
  std::vector<OptimizeReport> found;
  for (const auto& [problem, row] : best) {
    found.push_back(*row);
    const auto form = library.find(problem);
    if (form != library.end()) found.back().form_speedup = form->second;
  }
  std::ranges::sort(found, [](const OptimizeReport& a, const OptimizeReport& b) {
    return natural_less(a.problem, b.problem);
  });
  return found;
}

SuiteSummary summarize(const std::vector<OptimizeReport>& rows) {
  SuiteSummary summary;
  std::vector<double> best, unflagged, eager, compile, library, graph;
  for (const OptimizeReport& row : rows) {
    ++summary.problems;
    if (!row.error.empty()) ++summary.failed;
    if (row.verdict != "accepted") continue;
    ++summary.accepted;
    if (row.speedup_vs_eager) eager.push_back(*row.speedup_vs_eager);
    if (row.speedup_vs_compile) compile.push_back(*row.speedup_vs_compile);
    if (const auto speedup = row.speedup()) {
      best.push_back(*speedup);
      if (!has_problem_flag(row)) unflagged.push_back(*speedup);
    }
    if (const auto speedup = row.speedup_vs_library()) library.push_back(*speedup);
    if (row.graph_ns && row.graph_eager_ns && *row.graph_ns > 0) {
      graph.push_back(static_cast<double>(*row.graph_eager_ns) /
                      static_cast<double>(*row.graph_ns));
    }
    const bool tie = has_flag(row, "tie") || has_flag(row, "too_small");
    const bool slower = row.speedup_vs_eager && *row.speedup_vs_eager < 1 && !tie;
    if (slower) ++summary.slower_eager;
    if (!slower && !row.kernel_class.empty()) ++summary.classes[row.kernel_class];
  }
  summary.geomean = geometric_mean(best);
  summary.geomean_unflagged = geometric_mean(unflagged);
  summary.geomean_eager = geometric_mean(eager);
  summary.geomean_compile = geometric_mean(compile);
  summary.geomean_library = geometric_mean(library);
  summary.libraries = std::ssize(library);
  summary.geomean_graph = geometric_mean(graph);
  summary.graphs = std::ssize(graph);
  summary.median = median_of(best);
  summary.median_eager = median_of(eager);
  return summary;
}

std::string suite_text(const std::vector<OptimizeReport>& rows) {
  std::vector<std::vector<std::string>> table = {kHeadings};
  for (const OptimizeReport& row : rows) table.push_back(cells_of(row));
  std::vector<size_t> widths(kHeadings.size(), 0);
  for (const auto& line : table) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const auto& line : table) {
    std::string rendered;
    for (size_t i = 0; i < line.size(); ++i) {
      const bool left = i < 3 || i >= 10;
      rendered += left ? fmt::format("{:<{}}  ", line[i], widths[i])
                       : fmt::format("{:>{}}  ", line[i], widths[i]);
    }
    text += rendered.substr(0, rendered.find_last_not_of(' ') + 1) + "\n";
  }
  for (const OptimizeReport& row : rows) {
    if (!row.error.empty()) text += fmt::format("{}: {}\n", row.problem, row.error);
  }
  return text + "\n" + summary_text(rows);
}

std::string suite_html(const std::vector<OptimizeReport>& rows) {
  std::string html =
      "<!doctype html>\n<meta charset=\"utf-8\">\n<title>KernelEvolve suite report</title>\n"
      "<style>body{font:15px system-ui;margin:2em}table{border-collapse:collapse}"
      "td,th{padding:.3em .8em;border-bottom:1px solid #ddd;text-align:right}"
      "td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}</style>\n<table>\n<tr>";
  for (const std::string& heading : kHeadings) html += "<th>" + heading + "</th>";
  html += "</tr>\n";
  for (const OptimizeReport& row : rows) {
    html += "<tr>";
    for (const std::string& cell : cells_of(row)) html += "<td>" + escape_html(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table>\n<p>" + escape_html(summary_text(rows)) + "</p>\n";
}

}  // namespace ke::app
