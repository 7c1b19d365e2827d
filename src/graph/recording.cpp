// SPDX-License-Identifier: Apache-2.0
#include "graph/recording.hpp"

#include <fmt/format.h>

#include "base/json.hpp"

namespace ke {
namespace {

template <class E>
Result<E> enum_field(Fields& fields, const char* key) {
  const std::string name = TRY(fields.get<std::string>(key));
  const std::optional<E> value = parse_enum<E>(name);
  if (!value) return Error{Errc::invalid, fmt::format("'{}' is no value of '{}'", name, key)};
  return *value;
}

Result<Digest> digest_field(Fields& fields, const char* key) {
  const std::optional<Digest> digest = parse_digest(TRY(fields.get<std::string>(key)));
  if (!digest) return Error{Errc::invalid, fmt::format("'{}' is not a digest", key)};
  return *digest;
}

// Text that was embedded as a JSON value.
Result<std::string> text_field(Fields& fields, const char* key) {
  const Json value = TRY(fields.get<Json>(key));
  return value.is_null() ? std::string() : dump_json(value);
}

Result<std::vector<NodeId>> ids_field(Fields& fields, const char* key) {
  std::vector<NodeId> ids;
  for (const int64_t id : TRY(fields.get<std::vector<int64_t>>(key))) ids.push_back({id});
  return ids;
}

Result<Json> list_field(Fields& fields, const char* key) {
  Json list = TRY(fields.get<Json>(key));
  if (!list.is_array()) return Error{Errc::invalid, fmt::format("'{}' is not a list", key)};
  return list;
}

Result<void> read_evaluation(const Json& json, NodeId node, Recording& into) {
  Fields fields = TRY(Fields::of(json, "an evaluation"));
  const EvaluationId id{TRY(fields.get<int64_t>("id"))};
  RecordedEvaluation row{.node = node,
                         .effort = TRY(fields.get<std::string>("effort")),
                         .reused_from = {TRY(fields.get_or<int64_t>("reused_from", 0))},
                         .evaluation = {}};
  row.evaluation = TRY(decode_evaluation(TRY(fields.get<Json>("evaluation"))));
  into.evaluations.emplace(id, std::move(row));
  return {};
}

Result<void> read_node(const Json& json, Recording& into) {
  Fields fields = TRY(Fields::of(json, "a node"));
  NodeRow row{.id = {TRY(fields.get<int64_t>("node"))}, .run = into.run.id};
  row.step = TRY(fields.get<int64_t>("step"));
  row.kind = TRY(enum_field<NodeKind>(fields, "kind"));
  row.memory = TRY(enum_field<Memory>(fields, "memory"));
  row.parents = TRY(ids_field(fields, "parents"));
  row.proposer = TRY(fields.get<std::string>("proposer"));
  row.note = TRY(fields.get<std::string>("note"));
  row.source = TRY(fields.get<std::string>("source"));
  row.source_digest = TRY(digest_field(fields, "source_digest"));
  row.normalised_digest = TRY(digest_field(fields, "normalised_digest"));
  row.plan = TRY(text_field(fields, "plan"));
  row.prompt = {TRY(fields.get_or<int64_t>("prompt", 0))};
  for (const Json& one : TRY(list_field(fields, "evaluations"))) {
    TRY(read_evaluation(one, row.id, into));
  }
  into.nodes.emplace(row.id, std::move(row));
  return {};
}

Result<void> read_answer(const Json& json, PromptId prompt, Recording& into) {
  Fields fields = TRY(Fields::of(json, "an answer"));
  AnswerRow row{.id = {TRY(fields.get<int64_t>("id"))}, .prompt = prompt};
  row.consumed = TRY(fields.get<int64_t>("consumed"));
  row.early = TRY(fields.get<bool>("early"));
  row.outcome = TRY(text_field(fields, "outcome"));
  row.fault = TRY(fields.get<std::string>("fault"));
  into.answers.emplace(row.id, std::move(row));
  return {};
}

Result<void> read_prompt(const Json& json, const Json& texts, Recording& into) {
  Fields fields = TRY(Fields::of(json, "a prompt"));
  PromptRow row{.id = {TRY(fields.get<int64_t>("id"))}, .run = into.run.id};
  row.step = TRY(fields.get<int64_t>("step"));
  row.consumed = TRY(fields.get<int64_t>("consumed"));
  row.follows = {TRY(fields.get_or<int64_t>("follows", 0))};
  row.style = TRY(fields.get<std::string>("style"));
  row.model = TRY(fields.get<std::string>("model"));
  row.kind = TRY(enum_field<NodeKind>(fields, "kind"));
  row.memory = TRY(enum_field<Memory>(fields, "memory"));
  row.parents = TRY(ids_field(fields, "parents"));
  row.digest = TRY(digest_field(fields, "digest"));
  row.stable_digest = TRY(digest_field(fields, "stable"));
  row.request = TRY(text_field(fields, "request"));
  row.ground = TRY(text_field(fields, "ground"));
  Fields shared = TRY(Fields::of(texts, "the texts"));
  row.stable = TRY(shared.get<std::string>(row.stable_digest.hex().c_str()));
  for (const Json& one : TRY(list_field(fields, "answers"))) {
    TRY(read_answer(one, row.id, into));
  }
  into.prompts.emplace(row.id, std::move(row));
  return {};
}

Result<void> read_statistic(const Json& json, Recording& into) {
  Fields fields = TRY(Fields::of(json, "a statistic"));
  StatisticRow row{.step = TRY(fields.get<int64_t>("step")),
                   .node = {TRY(fields.get<int64_t>("node"))},
                   .name = TRY(fields.get<std::string>("name")),
                   .value = TRY(fields.get<double>("value"))};
  if (row.name == "spent" && into.nodes.contains(row.node)) into.spent.push_back(std::move(row));
  return {};
}

bool names_a_row(const JournalRow& row, const Recording& in) {
  switch (row.kind) {
    case JournalKind::node:
      return in.nodes.contains({row.row});
    case JournalKind::evaluation:
      return in.evaluations.contains({row.row});
    case JournalKind::prompt:
      return in.prompts.contains({row.row});
    case JournalKind::answer:
      return in.answers.contains({row.row});
  }
  return false;
}

Result<void> read_journal(const Json& list, Recording& into) {
  for (const Json& entry : list) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                      entry[1].is_number_integer();
    const auto kind = pair ? parse_enum<JournalKind>(entry[0].get<std::string>()) : std::nullopt;
    if (!kind) return Error{Errc::invalid, "the journal holds no list of [kind, id] pairs"};
    into.journal.push_back({*kind, entry[1].get<int64_t>()});
    if (!names_a_row(into.journal.back(), into)) {
      return Error{Errc::invalid, fmt::format("the journal names {} {}, which is not there",
                                              enum_name(*kind), entry[1].get<int64_t>())};
    }
  }
  if (into.journal.size() < into.nodes.size()) {
    return Error{Errc::conflict, "the run was recorded by a version that kept no journal"};
  }
  return {};
}

}  // namespace

Result<Recording> decode_recording(const Json& json) {
  Fields fields = TRY(Fields::of(json, "the recording"));
  if (const int schema = TRY(fields.get<int>("schema")); schema != kRecordingSchema) {
    return Error{Errc::conflict,
                 fmt::format("the recording has schema {}, known is {}", schema, kRecordingSchema)};
  }
  Recording recording;
  RunRow& run = recording.run;
  run.id = {TRY(fields.get<int64_t>("run"))};
  recording.problem = TRY(fields.get<std::string>("problem"));
  recording.problem_digest = TRY(digest_field(fields, "problem_digest"));
  run.scope.target = TRY(fields.get<std::string>("target"));
  run.scope.toolchain = TRY(fields.get<std::string>("toolchain"));
  run.config = TRY(text_field(fields, "config"));
  run.description = TRY(text_field(fields, "description"));
  run.seed = TRY(fields.get<uint64_t>("seed"));
  for (const Json& node : TRY(list_field(fields, "nodes"))) TRY(read_node(node, recording));
  const Json texts = TRY(fields.get<Json>("texts"));
  for (const Json& prompt : TRY(list_field(fields, "prompts"))) {
    TRY(read_prompt(prompt, texts, recording));
  }
  TRY(read_journal(TRY(list_field(fields, "journal")), recording));
  for (const Json& statistic : TRY(list_field(fields, "statistics"))) {
    TRY(read_statistic(statistic, recording));
  }
  for (const char* key : {"started_utc_ms", "ended_utc_ms", "end_reason"}) fields.find(key);
  TRY(fields.finish());
  return recording;
}

}  // namespace ke
