// SPDX-License-Identifier: Apache-2.0
//
// Typed events instead of log lines: the live line, the journal and the tests read the same ones.
// Libraries never print; they emit.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.hpp"

namespace ke {

// Receives every event. Called from the engine's thread only.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void emit(std::string_view name, const Json& fields) = 0;
};

class NullEvents final : public EventSink {
 public:
  void emit(std::string_view, const Json&) override {}
};

}  // namespace ke
