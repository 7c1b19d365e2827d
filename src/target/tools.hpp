// SPDX-License-Identifier: Apache-2.0
//
// How a target has tools look at a candidate: by asking for commands, which somebody else runs in
// a locked room. What tools print about a hostile source is hostile text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ke {

class ToolRunner {
 public:
  virtual ~ToolRunner() = default;

  // Makes a file in the room's folder, where {source} lies as well.
  virtual Result<void> write(std::string_view name, std::string_view contents) = 0;

  // Runs a command there; {source} and {output} are replaced as in a BuildRecipe. What it printed
  // on both streams, capped. Errc::unavailable with a sentence when the tool is not there, fails,
  // or takes too long.
  virtual Result<std::string> run(const std::vector<std::string>& command) = 0;
};

}  // namespace ke
