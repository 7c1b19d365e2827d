// SPDX-License-Identifier: Apache-2.0
#include "app/submission.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/optimize_report.hpp"
#include "base/json.hpp"
#include "graph/source.hpp"
#include "propose/model/text.hpp"
#include "search/search.hpp"

namespace ke::app {
namespace {

constexpr const char* kProposer = "mcp";
constexpr size_t kNoteBytesMax = 400;

Error refused(std::string sentence) { return Error{Errc::invalid, std::move(sentence)}; }

// How much the figures say.
std::string worth_of(const Judged& judged) {
  std::string text;
  if (judged.known) {
    text = fmt::format("Node {} holds this kernel already; it was not judged again. ",
                       judged.node.value);
  }
  const Evaluation& evaluation = judged.evaluation;
  if (evaluation.verdict != Verdict::accepted) return text + "It is rejected.";
  if (!evaluation.measurement) return text + "It is right; its time was not measured.";
  if (evaluation.confirmed) {
    return text + "It is right; the times are confirmed: fresh seeds, processes and samples.";
  }
  if (evaluation.stopped_early) {
    text += "Timing was stopped early, because others are clearly faster. ";
  }
  return text + "It is right; the times are one unconfirmed screen, which flatters the best of "
                "many. bench confirms them.";
}

Json encode_errors(const std::vector<OutputError>& errors) {
  Json json = Json::array();
  for (const OutputError& error : errors) {
    json.push_back({{"rms", error.rms},
                    {"rms_budget", error.rms_budget},
                    {"pytorch_rms", error.pytorch_rms},
                    {"max", error.max},
                    {"max_budget", error.max_budget},
                    {"pytorch_max", error.pytorch_max}});
  }
  return json;
}

}  // namespace

// --- SubmissionDesk -----------------------------------------------------------------------------

Result<void> SubmissionDesk::check_source(const std::string& source) const {
  const int64_t most = options_.limits.source_bytes_max;
  if (static_cast<int64_t>(source.size()) > most) {
    return refused(fmt::format("the source has {} bytes; at most {} are taken.", source.size(),
                               most));
  }
  if (normalise_source(source).find_first_not_of(" \n\t") == std::string::npos) {
    return refused("the source is empty; send the whole file that defines ke_launch.");
  }
  if (source.find('\0') != std::string::npos) {
    return refused("the source holds a zero byte; send it as text.");
  }
  return {};
}

Result<void> SubmissionDesk::check(const Submission& submission) const {
  TRY(check_source(submission.source));
  const std::string& note = submission.note;
  if (note.size() > kNoteBytesMax || std::ranges::any_of(note, [](char c) {
        return static_cast<unsigned char>(c) < ' ';
      })) {
    return refused(fmt::format("a note is one line of at most {} bytes.", kNoteBytesMax));
  }
  if (submission.parent.value == 0) return {};
  const int64_t id = submission.parent.value;
  const Result<NodeRow> parent = options_.graph.node(submission.parent);
  if (!parent && parent.error().code == Errc::not_found) {
    return refused(fmt::format("there is no node {}; submit and best say the numbers of nodes. "
                               "Leave parent out for a kernel made from nothing.",
                               id));
  }
  if (!parent) return parent.error();
  const Scope scope = TRY(options_.graph.run(parent->run)).scope;
  if (scope.problem != options_.scope.problem) {
    return refused(fmt::format("node {} is a kernel of another problem, or of another version of "
                               "this one; a parent must be of the same.",
                               id));
  }
  if (scope.target != options_.scope.target) {
    return refused(fmt::format("node {} is a kernel for {}; a parent must be for {}.", id,
                               scope.target, options_.scope.target));
  }
  return {};
}

Result<Evaluation> SubmissionDesk::judge(const std::string& source, const JudgeOptions& options) {
  const Artifact artifact = TRY(options_.evaluator.build(source));
  Evaluation evaluation = artifact.failure ? *artifact.failure
                                           : TRY(options_.evaluator.judge(artifact, options));
  evaluation.build_ms = artifact.build_ms;
  return evaluation;
}

Result<Judged> SubmissionDesk::verify(const std::string& source) {
  TRY(check_source(source));
  const JudgeOptions options{.effort = Effort::full, .measure = false};
  Judged judged{.node = {}, .effort = std::string(enum_name(options.effort)), .evaluation = {}};
  judged.evaluation = TRY(judge(source, options));
  return judged;
}

Result<Judged> SubmissionDesk::bench(const std::string& source) {
  TRY(check_source(source));
  const JudgeOptions options{.effort = Effort::confirm};
  Judged judged{.node = {}, .effort = std::string(enum_name(options.effort)), .evaluation = {}};
  judged.evaluation = TRY(judge(source, options));
  judged.evaluation.confirmed = true;  // a rejection as well
  const auto same =
      TRY(options_.graph.find_duplicate(options_.scope, normalised_digest(source)));
  if (!same) return judged;
  judged.node = same->node;
  TRY(options_.graph.add_evaluation(judged.node, judged.evaluation, judged.effort));
  return judged;
}

Result<Judged> SubmissionDesk::submit(const Submission& submission) {
  TRY(check(submission));
  auto same =
      TRY(options_.graph.find_duplicate(options_.scope, normalised_digest(submission.source)));
  if (same) {
    return Judged{same->node, true, std::move(same->effort), std::move(same->evaluation)};
  }
  Judged judged{.node = {}, .effort = std::string(enum_name(Effort::screen)), .evaluation = {}};
  judged.evaluation = TRY(judge(submission.source, {.best_ns = best_ns_}));
  judged.node = TRY(record(submission));
  TRY(options_.graph.add_evaluation(judged.node, judged.evaluation, judged.effort));
  if (const auto& measured = judged.evaluation.measurement) {
    best_ns_ = std::min(best_ns_.value_or(measured->time_ns), measured->time_ns);
  }
  return judged;
}

Result<NodeId> SubmissionDesk::record(const Submission& submission) {
  if (!run_) {
    run_ = TRY(options_.graph.add_run({.scope = options_.scope,
                                       .config = dump_json(config_of_submissions()),
                                       .description = options_.description,
                                       .started_utc_ms = options_.clock.utc_ms()}));
  }
  NodeRow row{.run = run_,
              .step = steps_ + 1,
              .kind = NodeKind::draft,
              .memory = Memory::nothing,
              .proposer = kProposer,
              .source = submission.source,
              .note = submission.note};
  if (submission.parent) {
    row.kind = NodeKind::mutate;
    row.memory = Memory::parents;
    row.parents = {submission.parent};
  }
  const NodeId node = TRY(options_.graph.add_node(std::move(row)));
  ++steps_;
  return node;
}

Result<KernelProfile> SubmissionDesk::profile(const std::string& source) {
  TRY(check_source(source));
  return options_.evaluator.profile(source);
}

Result<std::optional<Judged>> SubmissionDesk::best() const {
  const auto ranked = TRY(options_.graph.best_of_scope(options_.scope, 1));
  if (ranked.empty()) return std::optional<Judged>();
  auto found = TRY(options_.graph.verdict_of(ranked.front().node));
  return std::optional<Judged>(Judged{ranked.front().node, false, std::move(found->effort),
                                      std::move(found->evaluation)});
}

Result<void> SubmissionDesk::close() {
  if (!run_) return {};
  const RunId run = std::exchange(run_, RunId{});
  steps_ = 0;
  return options_.graph.end_run(
      {.run = run, .ended_utc_ms = options_.clock.utc_ms(), .reason = "closed"});
}

// --- JSON ---------------------------------------------------------------------------------------

Json encode(const Judged& judged) {
  const Evaluation& evaluation = judged.evaluation;
  OptimizeReport figures;  // for the keys that every result has
  figures.fill_figures(evaluation);
  const Json all = encode(figures);
  Json json{{"verdict", enum_name(evaluation.verdict)},
            {"detail", model::without_paths(evaluation.detail)},
            {"diagnostics", model::without_paths(model::as_utf8(evaluation.diagnostics))},
            {"confirmed", evaluation.confirmed && evaluation.verdict == Verdict::accepted},
            {"effort", judged.effort},
            {"known", judged.known},
            {"node", judged.node ? Json(judged.node.value) : Json()},
            {"errors", encode_errors(evaluation.errors)},
            {"note", worth_of(judged)}};
  for (const char* key : {"time_ns", "baseline_ns", "speedup_vs_eager", "speedup_vs_compile",
                          "flags", "class", "cases"}) {
    if (all.contains(key)) json[key] = all.at(key);
  }
  // What `best` ranks by: times of different moments are not comparable, paired ratios are.
  const std::optional<double> ranked_by = ranking_fitness(evaluation);
  json["fitness"] = ranked_by ? Json(*ranked_by) : Json();
  if (const auto& measured = evaluation.measurement) {
    json["speedup"] = {{"median", measured->speedup},
                       {"low", measured->speedup_low},
                       {"high", measured->speedup_high}};
  }
  return json;
}

}  // namespace ke::app
