// SPDX-License-Identifier: Apache-2.0
#include "propose/model/ground.hpp"

#include "base/json.hpp"

namespace ke {

namespace {

Json encode_entries(const std::vector<IndexEntry>& entries) {
  Json list = Json::array();
  for (const IndexEntry& one : entries) {
    list.push_back(
        {{"path", one.path}, {"title", one.title}, {"topics", one.topics}, {"text", one.text}});
  }
  return list;
}

Result<std::vector<IndexEntry>> decode_entries(const Json& json) {
  std::vector<IndexEntry> entries;
  for (const Json& one : json) {
    Fields entry = TRY(Fields::of(one, "a line of the index"));
    entries.push_back(
        {TRY(entry.get<std::string>("path")), TRY(entry.get<std::string>("title")),
         TRY(entry.get<std::string>("topics")), TRY(entry.get<std::string>("text"))});
    TRY(entry.finish());
  }
  return entries;
}

}  // namespace

Json encode(const PromptGround& ground) {
  Json documents = Json::array();
  for (const PromptDocument& one : ground.documents) {
    documents.push_back({{"path", one.path},
                         {"title", one.title},
                         {"text", one.text},
                         {"reason", one.reason}});
  }
  Json json{{"profile", ground.profile ? encode(*ground.profile) : Json(nullptr)},
            {"documents", std::move(documents)}};
  if (ground.diagnosis) json["diagnosis"] = encode(*ground.diagnosis);
  if (!ground.shown.empty()) json["shown"] = encode_entries(ground.shown);
  return json;
}

Result<PromptGround> decode_prompt_ground(const Json& json) {
  Fields fields = TRY(Fields::of(json, "what a prompt draws on"));
  PromptGround ground;
  const Json profile = TRY(fields.get<Json>("profile"));
  if (!profile.is_null()) ground.profile = TRY(decode_kernel_profile(profile));
  const Json documents = TRY(fields.get<Json>("documents"));
  for (const Json& one : documents) {
    Fields entry = TRY(Fields::of(one, "a document of a prompt"));
    ground.documents.push_back({TRY(entry.get<std::string>("path")),
                                TRY(entry.get<std::string>("title")),
                                TRY(entry.get<std::string>("text")),
                                TRY(entry.get<std::string>("reason"))});
    TRY(entry.finish());
  }
  if (const Json* diagnosis = fields.find("diagnosis")) {
    ground.diagnosis = TRY(decode_diagnosis(*diagnosis));
  }
  if (const Json* shown = fields.find("shown")) ground.shown = TRY(decode_entries(*shown));
  TRY(fields.finish());
  return ground;
}

Json encode(const std::vector<Found>& found) {
  Json list = Json::array();
  for (const Found& one : found) {
    list.push_back({{"search", llm::encode(one.search)},
                    {"entries", encode_entries(one.entries)},
                    {"note", one.note}});
  }
  return Json{{"found", std::move(list)}};
}

Result<std::vector<Found>> decode_found(const Json& json) {
  Fields fields = TRY(Fields::of(json, "what searches found"));
  const Json list = TRY(fields.get<Json>("found"));
  TRY(fields.finish());
  std::vector<Found> found;
  for (const Json& one : list) {
    Fields entry = TRY(Fields::of(one, "what a search found"));
    const Json search = TRY(entry.get<Json>("search"));
    Found next;
    next.search = TRY(llm::parse_tool_call(dump_json(search)).context("a search"));
    next.entries = TRY(decode_entries(TRY(entry.get<Json>("entries"))));
    next.note = TRY(entry.get<std::string>("note"));
    TRY(entry.finish());
    found.push_back(std::move(next));
  }
  return found;
}

Json encode(const ToolUse& use) {
  return Json{{"tool", llm::encode(use.call)}, {"result", use.result}};
}

Result<ToolUse> decode_tool_use(const Json& json) {
  Fields fields = TRY(Fields::of(json, "what a tool gave"));
  const Json call = TRY(fields.get<Json>("tool"));
  ToolUse use;
  use.call = TRY(llm::parse_tool_call(dump_json(call)).context("a tool that was used"));
  use.result = TRY(fields.get<std::string>("result"));
  TRY(fields.finish());
  return use;
}

}  // namespace ke
