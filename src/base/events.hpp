// SPDX-License-Identifier: Apache-2.0
//
// Typed events instead of log lines: the live line, the journal and the tests read the same ones.
// Libraries never print; they emit.
#pragma once

#include <functional>
#include <mutex>
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

// Holds what threads other than the engine's emit until the engine passes it on. Safe to emit to
// from many threads; an event is handed over once.
class EventQueue final : public EventSink {
 public:
  void emit(std::string_view name, const Json& fields) override;
  void drain(EventSink& to);  // in the order of emission

 private:
  struct Held {
    std::string name;
    std::string fields;  // JSON text
  };
  std::mutex mutex_;
  std::vector<Held> held_;
};

}  // namespace ke
