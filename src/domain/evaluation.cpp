// SPDX-License-Identifier: Apache-2.0
//
// JSON form of evaluations. Optional numbers are null when they were not measured; decoding refuses
// unknown fields, so an evaluation written by a newer version is an error, never half read.
#include "domain/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.hpp"

namespace ke {
namespace {

Json encode(const OutputError& error) {
  return Json{{"rms", error.rms},
              {"max", error.max},
              {"pytorch_rms", error.pytorch_rms},
              {"pytorch_max", error.pytorch_max},
              {"rms_budget", error.rms_budget},
              {"max_budget", error.max_budget},
              {"ungraded", error.ungraded}};
}

// JSON has no infinities: a writer turns them into null, which reads back as infinity here. Errors
// are the only numbers of ours that may be infinite (a NaN where a number belongs).
Result<double> number_or_infinity(Fields& fields, const char* key) {
  const Json* found = fields.find(key);
  if (found && found->is_null()) return std::numeric_limits<double>::infinity();
  return fields.get<double>(key);
}

Result<OutputError> decode_output_error(const Json& json) {
  Fields fields = TRY(Fields::of(json, "an output error"));
  OutputError error;
  error.rms = TRY(number_or_infinity(fields, "rms"));
  error.max = TRY(number_or_infinity(fields, "max"));
  error.pytorch_rms = TRY(number_or_infinity(fields, "pytorch_rms"));
  error.pytorch_max = TRY(number_or_infinity(fields, "pytorch_max"));
  error.rms_budget = TRY(number_or_infinity(fields, "rms_budget"));
  error.max_budget = TRY(number_or_infinity(fields, "max_budget"));
  error.ungraded = TRY(fields.get<int64_t>("ungraded"));
  TRY(fields.finish());
  return error;
}

Result<std::optional<int64_t>> optional_integer(Fields& fields, const char* key) {
  const Json* found = fields.find(key);
  if (!found || found->is_null()) return std::optional<int64_t>();
  return std::optional<int64_t>(TRY(fields.get<int64_t>(key)));
}

Result<Measurement> decode_measurement(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a measurement"));
  Measurement m;
  m.candidate_ns = TRY(fields.get<std::vector<int64_t>>("candidate_ns"));
  m.eager_ns = TRY(fields.get<std::vector<int64_t>>("eager_ns"));
  m.compile_ns = TRY(fields.get<std::vector<int64_t>>("compile_ns"));
  m.empty_call_ns = TRY(fields.get<int64_t>("empty_call_ns"));
  m.calls_per_batch = TRY(fields.get<int32_t>("calls_per_batch"));
  m.cold = TRY(fields.get<bool>("cold"));
  m.time_ns = TRY(fields.get<int64_t>("time_ns"));
  m.eager_median_ns = TRY(optional_integer(fields, "eager_median_ns"));
  m.compile_median_ns = TRY(optional_integer(fields, "compile_median_ns"));
  m.speedup = TRY(fields.get<double>("speedup"));
  m.speedup_low = TRY(fields.get<double>("speedup_low"));
  m.speedup_high = TRY(fields.get<double>("speedup_high"));
  m.warm_ns = TRY(optional_integer(fields, "warm_ns"));
  m.warm_baseline_ns = TRY(optional_integer(fields, "warm_baseline_ns"));
  m.graph_ns = TRY(optional_integer(fields, "graph_ns"));
  m.graph_baseline_ns = TRY(optional_integer(fields, "graph_baseline_ns"));
  m.drift = TRY(fields.get_or<double>("drift", 1.0));
  TRY(fields.finish());
  return m;
}

Json encode(const CaseResult& result) {
  return Json{{"shapes", result.shapes},
              {"flags", result.flags},
              {"counted", result.counted},
              {"measurement", result.measurement ? encode(*result.measurement) : Json(nullptr)}};
}

Result<CaseResult> decode_case(const Json& json) {
  Fields fields = TRY(Fields::of(json, "a shape case"));
  CaseResult result;
  result.shapes = TRY(fields.get<std::string>("shapes"));
  result.flags = TRY(fields.get<std::vector<std::string>>("flags"));
  result.counted = TRY(fields.get<bool>("counted"));
  const Json* measurement = fields.find("measurement");
  if (measurement && !measurement->is_null()) {
    result.measurement = TRY(decode_measurement(*measurement));
  }
  TRY(fields.finish());
  return result;
}

// --- Means over shape cases --------------------------------------------------------------------

std::vector<const CaseResult*> counted(const std::vector<CaseResult>& cases) {
  std::vector<const CaseResult*> found, all;
  for (const CaseResult& one : cases) {
    all.push_back(&one);
    if (one.counted) found.push_back(&one);
  }
  return found.empty() ? all : found;
}

// Of what `value` says about each measurement. Every case has been measured.
template <class Value>
double geometric_mean(const std::vector<CaseResult>& cases, const Value& value) {
  const std::vector<const CaseResult*> included = counted(cases);
  double logarithms = 0;
  for (const CaseResult* one : included) {
    logarithms += std::log(static_cast<double>(value(*one->measurement)));
  }
  return std::exp(logarithms / static_cast<double>(included.size()));
}

int64_t with_launch(int64_t ns) { return std::max(ns, kLaunchNs); }

// By how much what a time below kLaunchNs counts as lowers its speed-up, which stays a gain where
// it was one.
double launch_share(const Measurement& m) {
  if (m.time_ns >= kLaunchNs || !(m.speedup > 1)) return 1;
  const double share = static_cast<double>(m.time_ns) / static_cast<double>(kLaunchNs);
  return std::max(share, 1 / m.speedup);
}

int64_t mean_ns(const std::vector<CaseResult>& cases, int64_t Measurement::* time) {
  return std::llround(
      geometric_mean(cases, [&](const Measurement& m) { return with_launch(m.*time); }));
}

std::optional<int64_t> mean_ns(const std::vector<CaseResult>& cases,
                               std::optional<int64_t> Measurement::* time) {
  for (const CaseResult* one : counted(cases)) {
    if (!((*one->measurement).*time)) return std::nullopt;
  }
  return std::llround(
      geometric_mean(cases, [&](const Measurement& m) { return with_launch(*(m.*time)); }));
}

double mean_speedup(const std::vector<CaseResult>& cases, double Measurement::* ratio) {
  return geometric_mean(cases, [&](const Measurement& m) {
    return std::max(m.*ratio, std::numeric_limits<double>::min()) * launch_share(m);
  });
}

// What a measurement's speed-up would have been against eager.
double against_eager(const Measurement& measured) {
  const bool against_compile =
      !measured.compile_ns.empty() && measured.eager_median_ns && measured.compile_median_ns &&
      (measured.eager_ns.empty() || *measured.compile_median_ns < *measured.eager_median_ns);
  if (!against_compile) return measured.speedup;
  return measured.speedup * static_cast<double>(*measured.eager_median_ns) /
         static_cast<double>(*measured.compile_median_ns);
}

}  // namespace

std::optional<Measurement> mean_of(const std::vector<CaseResult>& cases) {
  const auto measured = [](const CaseResult& one) { return one.measurement.has_value(); };
  if (cases.empty() || !std::ranges::all_of(cases, measured)) return std::nullopt;
  Measurement mean;
  mean.time_ns = mean_ns(cases, &Measurement::time_ns);
  mean.eager_median_ns = mean_ns(cases, &Measurement::eager_median_ns);
  mean.compile_median_ns = mean_ns(cases, &Measurement::compile_median_ns);
  mean.speedup = mean_speedup(cases, &Measurement::speedup);
  mean.speedup_low = mean_speedup(cases, &Measurement::speedup_low);
  mean.speedup_high = mean_speedup(cases, &Measurement::speedup_high);
  for (const CaseResult* one : counted(cases)) mean.cold = mean.cold && one->measurement->cold;
  return mean;
}

Json encode(const Measurement& m) {
  return Json{{"candidate_ns", m.candidate_ns},
              {"eager_ns", m.eager_ns},
              {"compile_ns", m.compile_ns},
              {"empty_call_ns", m.empty_call_ns},
              {"calls_per_batch", m.calls_per_batch},
              {"cold", m.cold},
              {"time_ns", m.time_ns},
              {"eager_median_ns", or_null(m.eager_median_ns)},
              {"compile_median_ns", or_null(m.compile_median_ns)},
              {"speedup", m.speedup},
              {"speedup_low", m.speedup_low},
              {"speedup_high", m.speedup_high},
              {"warm_ns", or_null(m.warm_ns)},
              {"warm_baseline_ns", or_null(m.warm_baseline_ns)},
              {"graph_ns", or_null(m.graph_ns)},
              {"graph_baseline_ns", or_null(m.graph_baseline_ns)},
              {"drift", m.drift}};
}

Json encode(const Evaluation& e) {
  Json errors = Json::array();
  for (const OutputError& error : e.errors) errors.push_back(encode(error));
  Json json{{"verdict", enum_name(e.verdict)},
            {"detail", e.detail},
            {"diagnostics", e.diagnostics},
            {"errors", std::move(errors)},
            {"measurement", e.measurement ? encode(*e.measurement) : Json(nullptr)},
            {"flags", e.flags},
            {"kernel_class", e.kernel_class},
            {"protections", e.protections},
            {"confirmed", e.confirmed},
            {"stopped_early", e.stopped_early},
            {"build_ms", e.build_ms},
              {"judge_ms", e.judge_ms}};
  // Absent with one case, as in rows that were written before there were several.
  for (const CaseResult& one : e.cases) json["cases"].push_back(encode(one));
  return json;
}

Result<Evaluation> decode_evaluation(const Json& json) {
  Fields fields = TRY(Fields::of(json, "an evaluation"));
  Evaluation e;
  const std::string verdict = TRY(fields.get<std::string>("verdict"));
  const std::optional<Verdict> parsed = parse_enum<Verdict>(verdict);
  if (!parsed) return Error{Errc::invalid, fmt::format("there is no verdict '{}'", verdict)};
  e.verdict = *parsed;
  e.detail = TRY(fields.get<std::string>("detail"));
  e.diagnostics = TRY(fields.get<std::string>("diagnostics"));
  const Json errors = TRY(fields.get<Json>("errors"));
  if (!errors.is_array()) return Error{Errc::invalid, "the field 'errors' is not a list"};
  for (const Json& error : errors) e.errors.push_back(TRY(decode_output_error(error)));
  const Json* measurement = fields.find("measurement");
  if (measurement && !measurement->is_null()) e.measurement = TRY(decode_measurement(*measurement));
  e.flags = TRY(fields.get<std::vector<std::string>>("flags"));
  e.kernel_class = TRY(fields.get<std::string>("kernel_class"));
  e.protections = TRY(fields.get<std::string>("protections"));
  e.confirmed = TRY(fields.get<bool>("confirmed"));
  e.stopped_early = TRY(fields.get<bool>("stopped_early"));
  e.build_ms = TRY(fields.get<int64_t>("build_ms"));
  e.judge_ms = TRY(fields.get<int64_t>("judge_ms"));
  for (const Json& one : TRY(fields.get_or<std::vector<Json>>("cases", {}))) {
    e.cases.push_back(TRY(decode_case(one)));
  }
  TRY(fields.finish());
  if (e.measurement && e.verdict != Verdict::accepted) {
    return Error{Errc::invalid, "a rejected evaluation holds a measurement"};
  }
  return e;
}

// The measured ratio, of paired batches, not a quotient of medians that were taken at different
// times. With several shape cases the measurement is their mean already.
std::optional<double> fitness(const Evaluation& evaluation) {
  if (evaluation.verdict != Verdict::accepted || !evaluation.measurement) return std::nullopt;
  if (!(evaluation.measurement->speedup > 0)) return std::nullopt;
  return evaluation.measurement->speedup;
}

std::optional<double> ranking_fitness(const Evaluation& evaluation) {
  const std::optional<double> figure = fitness(evaluation);
  if (!figure) return std::nullopt;
  if (evaluation.cases.empty()) return against_eager(*evaluation.measurement);
  return geometric_mean(evaluation.cases, [](const Measurement& m) {
    return against_eager(m) * launch_share(m);
  });
}

}  // namespace ke
