// SPDX-License-Identifier: Apache-2.0
//
// A conversation over two descriptors, one message a line.
#pragma once

#include <stop_token>
#include <string>

#include "base/events.hpp"
#include "mcp/backend.hpp"

namespace ke::mcp {

struct Streams {
  int input = 0;
  int output = 1;  // nothing else may write to it
};

// Serves until the input ends and everything asked is answered, until nobody reads the output any
// more, or until a stop, which finishes what is under way. The work is done on the calling thread.
void serve(Backend& backend, const Streams& streams, const std::string& version, EventSink& events,
           const std::stop_token& stop);

}  // namespace ke::mcp
