// SPDX-License-Identifier: Apache-2.0
//
// What a server offers: tools, and documents as resources. The protocol (server.hpp) knows neither.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/events.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace ke::mcp {

struct Tool {
  std::string name;
  std::string title;
  std::string description;
  Json arguments;          // a JSON Schema of an object
  bool reads_only = true;  // changes nothing that anybody would miss
};

// What a tool says: for readers, in parts, and for programs. An empty list of texts: the data is
// the text as well.
struct ToolAnswer {
  std::vector<std::string> texts;
  Json data;  // an object
};

struct Resource {
  std::string uri;
  std::string name;
  std::string title;
};

// A call whose arguments were read. An Error is a tool's failure: the sentence is for the agent.
using Work = std::function<Result<ToolAnswer>(EventSink& events)>;

// Threads: prepare() and what is const may be called while work or a resource's reading is under
// way; of those there is one at a time.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string instructions() const = 0;
  virtual const std::vector<Tool>& tools() const = 0;
  // Only reads the arguments. Errc::invalid when they do not fit; the tool is one of tools().
  virtual Result<Work> prepare(const std::string& tool, const Json& arguments) = 0;

  virtual Result<std::vector<Resource>> resources() = 0;
  virtual Result<std::string> read_resource(const std::string& uri) = 0;  // Errc::not_found
};

}  // namespace ke::mcp
