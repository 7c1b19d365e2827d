// SPDX-License-Identifier: Apache-2.0
#include "app/optimize_report.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace ke::app {
namespace {

std::optional<double> ratio(const std::optional<int64_t>& baseline, int64_t time) {
  if (!baseline || time <= 0) return std::nullopt;
  return static_cast<double>(*baseline) / static_cast<double>(time);
}

// Keys as of the whole, where they mean the same.
Json encode_case(const CaseResult& one) {
  Json json = {{"shapes", one.shapes}, {"flags", one.flags}, {"counted", one.counted}};
  const Measurement measured = one.measurement.value_or(Measurement());
  json["time_ns"] = one.measurement ? Json(measured.time_ns) : Json(nullptr);
  json["baseline_ns"] = {{"eager", or_null(measured.eager_median_ns)},
                         {"compile", or_null(measured.compile_median_ns)}};
  json["speedup_vs_eager"] = or_null(ratio(measured.eager_median_ns, measured.time_ns));
  json["speedup_vs_compile"] = or_null(ratio(measured.compile_median_ns, measured.time_ns));
  return json;
}

// Per accepted kernel of a model, and per 1.0 by which the best kernel, whoever wrote it, beats the
// better baseline; null when there is nothing to divide by.
Json encode_models(const ModelCosts& models, std::optional<double> speedup) {
  const auto per = [](double cost, double count) {
    return count > 0 ? Json(cost / count) : Json();
  };
  const auto accepted = static_cast<double>(models.accepted);
  const double gained = speedup.value_or(1.0) - 1.0;
  const auto tokens = static_cast<double>(models.tokens);
  Json json = {{"calls", models.calls},
               {"tokens", models.tokens},
               {"usd", models.usd},
               {"kernels", models.kernels},
               {"accepted", models.accepted},
               {"tokens_per_accepted", per(tokens, accepted)},
               {"usd_per_accepted", per(models.usd, accepted)},
               {"tokens_per_speedup", per(tokens, gained)},
               {"usd_per_speedup", per(models.usd, gained)}};
  const ModelCost& advice = models.sub_agents;
  if (advice.calls > 0) {
    json["sub_agents"] = {
        {"calls", advice.calls}, {"tokens", advice.tokens}, {"usd", advice.usd}};
  }
  return json;
}

Result<ModelCosts> decode_costs(const Json& json) {
  Fields fields = TRY(Fields::of(json, "models"));
  ModelCost advice;
  if (const Json* part = fields.find("sub_agents")) {
    Fields inner = TRY(Fields::of(*part, "sub_agents"));
    advice = {TRY(inner.get<int64_t>("calls")), TRY(inner.get<int64_t>("tokens")),
              TRY(inner.get<double>("usd"))};
  }
  return ModelCosts{.calls = TRY(fields.get<int64_t>("calls")),
                    .tokens = TRY(fields.get<int64_t>("tokens")),
                    .usd = TRY(fields.get<double>("usd")),
                    .kernels = TRY(fields.get<int64_t>("kernels")),
                    .accepted = TRY(fields.get<int64_t>("accepted")),
                    .sub_agents = advice};
}

}  // namespace

void OptimizeReport::fill_figures(const Evaluation& evaluation) {
  flags = evaluation.flags;
  kernel_class = evaluation.kernel_class;
  cases = evaluation.cases;
  if (!evaluation.measurement) return;
  const Measurement& measured = *evaluation.measurement;
  time_ns = measured.time_ns;
  eager_ns = measured.eager_median_ns;
  compile_ns = measured.compile_median_ns;
  graph_ns = measured.graph_ns;
  graph_eager_ns = measured.graph_baseline_ns;
  speedup_vs_eager = ratio(eager_ns, measured.time_ns);
  speedup_vs_compile = ratio(compile_ns, measured.time_ns);
}

std::optional<double> OptimizeReport::speedup() const {
  if (!speedup_vs_eager) return speedup_vs_compile;
  if (!speedup_vs_compile) return speedup_vs_eager;
  return std::min(*speedup_vs_eager, *speedup_vs_compile);
}

std::optional<double> OptimizeReport::speedup_vs_library() const {
  const std::optional<double> own = speedup();
  if (!own || !form_speedup) return std::nullopt;
  return *own / std::max(1.0, *form_speedup);
}

Json encode(const OptimizeReport& report) {
  Json json = {{"problem", report.problem},
               {"target", report.target},
               {"verdict", report.verdict},
               {"speedup_vs_eager", or_null(report.speedup_vs_eager)},
               {"speedup_vs_compile", or_null(report.speedup_vs_compile)},
               {"time_ns", or_null(report.time_ns)},
               {"floor_ns", or_null(report.floor_ns)},
               {"baseline_ns",
                {{"eager", or_null(report.eager_ns)}, {"compile", or_null(report.compile_ns)}}},
               {"kernel_path", report.kernel_path},
               {"node", report.node},
               {"run", report.run},
               {"steps", report.steps},
               {"evaluated", report.evaluated},
               {"accepted", report.accepted},
               {"rejected", report.rejected},
               {"flags", report.flags},
               {"class", report.kernel_class},
               {"precision", report.precision},
               {"seed", report.seed},
               {"wall_s", report.wall_s},
               {"ended", report.ended}};
  if (report.graph_ns) {
    json["graph_ns"] = {{"kernel", *report.graph_ns}, {"eager", or_null(report.graph_eager_ns)}};
  }
  if (report.form_speedup) json["form_speedup"] = *report.form_speedup;
  if (report.models) json["models"] = encode_models(*report.models, report.speedup());
  if (!report.error.empty()) json["error"] = report.error;
  for (const CaseResult& one : report.cases) json["cases"].push_back(encode_case(one));
  return json;
}

Result<OptimizeReport> decode_optimize_report(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the result"));
  OptimizeReport report;
  report.problem = TRY(fields.get<std::string>("problem"));
  report.target = TRY(fields.get<std::string>("target"));
  report.verdict = TRY(fields.get<std::string>("verdict"));
  report.speedup_vs_eager = TRY(fields.get_optional<double>("speedup_vs_eager"));
  report.speedup_vs_compile = TRY(fields.get_optional<double>("speedup_vs_compile"));
  report.time_ns = TRY(fields.get_optional<int64_t>("time_ns"));
  report.floor_ns = TRY(fields.get_optional<int64_t>("floor_ns"));
  if (const Json* baselines = fields.find("baseline_ns")) {
    Fields inner = TRY(Fields::of(*baselines, "baseline_ns"));
    report.eager_ns = TRY(inner.get_optional<int64_t>("eager"));
    report.compile_ns = TRY(inner.get_optional<int64_t>("compile"));
  }
  if (const Json* graphs = fields.find("graph_ns")) {
    Fields inner = TRY(Fields::of(*graphs, "graph_ns"));
    report.graph_ns = TRY(inner.get_optional<int64_t>("kernel"));
    report.graph_eager_ns = TRY(inner.get_optional<int64_t>("eager"));
  }
  report.form_speedup = TRY(fields.get_optional<double>("form_speedup"));
  report.kernel_path = TRY(fields.get_or<std::string>("kernel_path", ""));
  report.node = TRY(fields.get_or<int64_t>("node", 0));
  report.run = TRY(fields.get_or<int64_t>("run", 0));
  report.steps = TRY(fields.get_or<int64_t>("steps", 0));
  report.evaluated = TRY(fields.get_or<int64_t>("evaluated", 0));
  report.accepted = TRY(fields.get_or<int64_t>("accepted", 0));
  report.rejected = TRY((fields.get_or<std::map<std::string, int64_t>>("rejected", {})));
  report.flags = TRY(fields.get_or<std::vector<std::string>>("flags", {}));
  report.kernel_class = TRY(fields.get_or<std::string>("class", ""));
  report.precision = TRY(fields.get_or<std::string>("precision", ""));
  report.seed = TRY(fields.get_or<uint64_t>("seed", 0));
  report.wall_s = TRY(fields.get_or<double>("wall_s", 0));
  report.ended = TRY(fields.get_or<std::string>("ended", ""));
  if (const Json* models = fields.find("models")) report.models = TRY(decode_costs(*models));
  report.error = TRY(fields.get_or<std::string>("error", ""));
  return report;
}

}  // namespace ke::app
