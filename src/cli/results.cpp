// SPDX-License-Identifier: Apache-2.0
#include "cli/results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "app/tools.hpp"

namespace ke::cli {
namespace {

std::string duration(int64_t ns) {
  const double value = static_cast<double>(ns);
  if (value < 1e6) return fmt::format("{:.1f} us", value / 1e3);
  return value < 1e9 ? fmt::format("{:.3f} ms", value / 1e6) : fmt::format("{:.3f} s", value / 1e9);
}

std::string baseline_line(const char* name, const std::optional<int64_t>& ns, int64_t time) {
  if (!ns || time <= 0) return fmt::format("  {:<14} not measured\n", name);
  return fmt::format("  {:<14} {:>12}   {:.2f}x\n", name, duration(*ns),
                     static_cast<double>(*ns) / static_cast<double>(time));
}

std::string times(int64_t time, const std::optional<int64_t>& eager,
                  const std::optional<int64_t>& compile, const std::optional<int64_t>& floor) {
  std::string text = fmt::format("  {:<14} {:>12}\n", "this kernel", duration(time));
  text += baseline_line("eager", eager, time) + baseline_line("torch.compile", compile, time);
  if (floor && *floor > 0) {
    text += fmt::format("  {:<14} {:>12}   ({:.2f} times the floor)\n", "physical floor",
                        duration(*floor), static_cast<double>(time) / static_cast<double>(*floor));
  }
  return text;
}

// What each of several shape cases took.
std::string case_lines(const std::vector<CaseResult>& cases) {
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    const CaseResult& one = cases[i];
    text += fmt::format("  {:<14} {}", fmt::format("case {}", i), one.shapes);
    if (one.measurement) {
      text += fmt::format(": {}, {:.2f}x", duration(one.measurement->time_ns),
                          one.measurement->speedup);
    }
    if (!one.flags.empty()) text += fmt::format(" ({})", fmt::join(one.flags, ", "));
    text += one.counted ? "\n" : ", not in the mean: nothing is computed\n";
  }
  return text;
}

std::string flags_line(const std::vector<std::string>& flags) {
  return flags.empty() ? "" : fmt::format("  flags          {}\n", fmt::join(flags, ", "));
}

// "12 calls, 80000 tokens, 0.3100 USD; 9 kernels, 4 accepted: 0.0775 USD each, 0.2500 USD a 1.0x"
std::string models_line(const app::OptimizeReport& report) {
  if (!report.models) return "";
  const app::ModelCosts& models = *report.models;
  std::string text =
      fmt::format("  models         {} calls, {} tokens, {:.4f} USD; {} kernels, {} accepted",
                  models.calls, models.tokens, models.usd, models.kernels, models.accepted);
  if (models.sub_agents.calls > 0) {
    text += fmt::format(" (sub-agents: {} calls, {} tokens, {:.4f} USD of these)",
                        models.sub_agents.calls, models.sub_agents.tokens, models.sub_agents.usd);
  }
  if (models.accepted > 0) {
    const auto accepted = static_cast<double>(models.accepted);
    text += fmt::format(": {:.0f} tokens, {:.4f} USD each",
                        static_cast<double>(models.tokens) / accepted, models.usd / accepted);
  }
  const double gained = report.speedup().value_or(1.0) - 1.0;
  if (gained > 0) {
    text += fmt::format("; {:.0f} tokens, {:.4f} USD for each 1.0x gained",
                        static_cast<double>(models.tokens) / gained, models.usd / gained);
  }
  return text + "\n";
}

}  // namespace

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string optimize_text(const app::OptimizeReport& report) {
  std::string rejected;
  for (const auto& [verdict, count] : report.rejected) {
    rejected += fmt::format(", {} {}", count, verdict);
  }
  const std::string counts =
      fmt::format("{} steps in {:.1f} s ({}): {} judged, {} accepted{}", report.steps,
                  report.wall_s, report.ended, report.evaluated, report.accepted, rejected);
  if (report.node == 0) {
    return fmt::format("{}: no kernel was accepted.\n  {}\n{}", report.problem, counts,
                       models_line(report));
  }
  std::string text = fmt::format("{} on {}: node {} accepted under {}\n", report.problem,
                                 report.target, report.node, report.precision);
  text +=
      "  proved         within PyTorch's error budget of the float64 truth, on nominal and "
      "probe inputs\n";
  if (report.time_ns) {
    text += times(*report.time_ns, report.eager_ns, report.compile_ns, report.floor_ns);
  }
  text += case_lines(report.cases);
  text += flags_line(report.flags);
  text += fmt::format("  search         {}, seed {}\n", counts, report.seed);
  text += models_line(report);
  text += fmt::format("  kernel         {}\n", report.kernel_path);
  return text;
}

std::string judge_text(const app::JudgeReport& report) {
  const Evaluation& evaluation = report.evaluation;
  std::string text = fmt::format("{}: {}\n", report.kernel_path, enum_name(evaluation.verdict));
  if (!evaluation.detail.empty()) text += fmt::format("  {}\n", evaluation.detail);
  for (size_t i = 0; i < evaluation.errors.size(); ++i) {
    const OutputError& error = evaluation.errors[i];
    text += fmt::format(
        "  output {}: rms error {:.2e} of {:.2e} allowed (PyTorch {:.2e}), max {:.2e} of {:.2e} "
        "(PyTorch {:.2e})\n",
        i, error.rms, error.rms_budget, error.pytorch_rms, error.max, error.max_budget,
        error.pytorch_max);
  }
  if (evaluation.measurement) {
    const Measurement& measured = *evaluation.measurement;
    text += times(measured.time_ns, measured.eager_median_ns, measured.compile_median_ns,
                  report.floor_ns);
    text += fmt::format(
        "  speed-up       {:.3f}x against the better baseline, 95 % interval {:.3f} "
        "to {:.3f}, {}\n",
        measured.speedup, measured.speedup_low, measured.speedup_high,
        evaluation.cases.empty() ? fmt::format("{} pairs", measured.candidate_ns.size())
                                 : std::string("mean over the cases"));
    if (!measured.compile_ns.empty() && measured.compile_ns.size() < measured.eager_ns.size()) {
      text += fmt::format("  torch.compile  clearly slower than eager in the first {} pairs: left "
                          "out of the others\n",
                          measured.compile_ns.size());
    }
    if (measured.warm_ns && measured.warm_baseline_ns) {
      text += fmt::format("  cache-warm     {:>12}   the better baseline {}\n",
                          duration(*measured.warm_ns), duration(*measured.warm_baseline_ns));
    }
    if (measured.graph_ns && measured.graph_baseline_ns) {
      text += fmt::format("  as a graph     {:>12}   eager as a graph {}\n",
                          duration(*measured.graph_ns), duration(*measured.graph_baseline_ns));
    }
  }
  text += case_lines(evaluation.cases);
  text += flags_line(evaluation.flags);
  if (!evaluation.protections.empty()) {
    text += fmt::format("  sandbox        {}\n", evaluation.protections);
  }
  if (!evaluation.diagnostics.empty()) text += evaluation.diagnostics + "\n";
  if (report.profile) text += "\n" + app::text_of(*report.profile);
  return text;
}

}  // namespace ke::cli
