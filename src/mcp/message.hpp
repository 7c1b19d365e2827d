// SPDX-License-Identifier: Apache-2.0
//
// Messages of JSON-RPC 2.0 as the Model Context Protocol uses them: one object a line, ids are
// strings or integers, params are objects. Lines are hostile.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/json.hpp"

namespace ke::mcp {

// What went wrong with a request; a tool that fails is none of these.
enum class Code : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  busy = -32000,
  resource_not_found = -32002
};

struct Request {
  Json id;
  std::string method;
  Json params;  // an object, empty when there were none
};

struct Notification {
  std::string method;
  Json params;
};

// An answer to something that was never asked.
struct Reply {};

// Not a message. The id is null where none could be read.
struct Malformed {
  Json id;
  Code code = Code::invalid_request;
  std::string sentence;
};

using Message = std::variant<Request, Notification, Reply, Malformed>;

Message read_message(std::string_view line);

// One line each, without its end.
std::string answer_line(const Json& id, Json result);
std::string error_line(const Json& id, Code code, std::string_view sentence);
std::string notification_line(std::string_view method, Json params);

}  // namespace ke::mcp
