// SPDX-License-Identifier: Apache-2.0
//
// JSON form of evaluations. Optional numbers are null when they were not measured; decoding refuses
// unknown fields, so an evaluation written by a newer version is an error, never half read.
#include "domain/evaluation.hpp"

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

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
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
  m.drift = TRY(fields.get_or<double>("drift", 1.0));
  TRY(fields.finish());
  return m;
}

}  // namespace

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
              {"drift", m.drift}};
}

Json encode(const Evaluation& e) {
  Json errors = Json::array();
  for (const OutputError& error : e.errors) errors.push_back(encode(error));
  return Json{{"verdict", enum_name(e.verdict)},
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
  TRY(fields.finish());
  if (e.measurement && e.verdict != Verdict::accepted) {
    return Error{Errc::invalid, "a rejected evaluation holds a measurement"};
  }
  return e;
}

// One shape case today, so the mean is over one ratio: the measured one, of paired batches, not a
// quotient of medians that were taken at different times.
std::optional<double> fitness(const Evaluation& evaluation) {
  if (evaluation.verdict != Verdict::accepted || !evaluation.measurement) return std::nullopt;
  if (!(evaluation.measurement->speedup > 0)) return std::nullopt;
  return evaluation.measurement->speedup;
}

std::optional<double> ranking_fitness(const Evaluation& evaluation) {
  const std::optional<double> figure = fitness(evaluation);
  if (!figure) return std::nullopt;
  const Measurement& measured = *evaluation.measurement;
  const bool against_compile =
      !measured.compile_ns.empty() && measured.eager_median_ns && measured.compile_median_ns &&
      (measured.eager_ns.empty() || *measured.compile_median_ns < *measured.eager_median_ns);
  if (!against_compile) return figure;
  return *figure * static_cast<double>(*measured.eager_median_ns) /
         static_cast<double>(*measured.compile_median_ns);
}

}  // namespace ke
