// SPDX-License-Identifier: Apache-2.0
#include "propose/model/ground.hpp"

#include "base/json.hpp"

namespace ke {

Json encode(const PromptGround& ground) {
  Json documents = Json::array();
  for (const PromptDocument& one : ground.documents) {
    documents.push_back({{"path", one.path},
                         {"title", one.title},
                         {"text", one.text},
                         {"reason", one.reason}});
  }
  return Json{{"profile", ground.profile ? encode(*ground.profile) : Json(nullptr)},
              {"documents", std::move(documents)}};
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
  TRY(fields.finish());
  return ground;
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
