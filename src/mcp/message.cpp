// SPDX-License-Identifier: Apache-2.0
#include "mcp/message.hpp"

namespace ke::mcp {
namespace {

Malformed invalid(Json id, std::string sentence) {
  return {std::move(id), Code::invalid_request, std::move(sentence)};
}

bool is_id(const Json& value) { return value.is_string() || value.is_number_integer(); }

}  // namespace

Message read_message(std::string_view line) {
  Result<Json> parsed = parse_json(line);
  if (!parsed) return Malformed{{}, Code::parse_error, "the line is " + parsed.error().message};
  if (parsed->is_array()) {
    return invalid({}, "batches are not taken; send one request a line");
  }
  if (!parsed->is_object()) return invalid({}, "a message is a JSON object");
  const auto id = parsed->find("id");
  const bool asks = id != parsed->end();
  // Nothing but ids is copied or printed: the rest may be as deep as a line is long.
  const Json echoed = asks && is_id(*id) ? *id : Json();
  const auto version = parsed->find("jsonrpc");
  if (version == parsed->end() || *version != "2.0") {
    return invalid(echoed, "a message says \"jsonrpc\": \"2.0\"");
  }
  const auto method = parsed->find("method");
  if (method == parsed->end()) {
    if (parsed->contains("result") || parsed->contains("error")) return Reply{};
    return invalid(echoed, "a message names a method");
  }
  if (!method->is_string()) return invalid(echoed, "a method's name is a string");
  if (asks && !is_id(*id)) return invalid({}, "an id is a string or an integer");
  Json params = Json::object();
  if (const auto given = parsed->find("params"); given != parsed->end()) {
    if (!given->is_object()) {
      return Malformed{echoed, Code::invalid_params, "params are a JSON object"};
    }
    params = std::move(*given);
  }
  if (!asks) return Notification{method->get<std::string>(), std::move(params)};
  return Request{*id, method->get<std::string>(), std::move(params)};
}

std::string answer_line(const Json& id, Json result) {
  return dump_json({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

std::string error_line(const Json& id, Code code, std::string_view sentence) {
  return dump_json({{"jsonrpc", "2.0"},
                    {"id", id},
                    {"error", {{"code", static_cast<int>(code)}, {"message", sentence}}}});
}

std::string notification_line(std::string_view method, Json params) {
  return dump_json({{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

}  // namespace ke::mcp
