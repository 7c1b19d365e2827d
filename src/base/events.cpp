// SPDX-License-Identifier: Apache-2.0
#include "base/events.hpp"

#include <utility>

#include "base/json.hpp"

namespace ke {

void EventQueue::emit(std::string_view name, const Json& fields) {
  const std::lock_guard lock(mutex_);
  held_.push_back({std::string(name), dump_json(fields)});
}

void EventQueue::drain(EventSink& to) {
  std::vector<Held> taken;
  {
    const std::lock_guard lock(mutex_);
    taken = std::exchange(held_, {});
  }
  for (const Held& event : taken) {
    const Result<Json> fields = parse_json(event.fields);
    to.emit(event.name, fields ? *fields : Json::object());
  }
}

}  // namespace ke
