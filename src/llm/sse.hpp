// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events, as both protocols stream their answers (the event stream format of the WHATWG
// HTML standard): lines of `field: value`, an event at each blank line. Bytes may break anywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ke::llm {

struct SseEvent {
  std::string name;  // of the field `event`; empty when it has none
  std::string data;  // its lines joined by '\n'
};

class SseReader {
 public:
  using Receiver = std::function<bool(const SseEvent&)>;  // false: no more, please

  explicit SseReader(int64_t event_bytes_max) : bytes_max_(event_bytes_max) {}

  // False when the receiver wants no more. Errc::invalid when an event is larger than allowed.
  Result<bool> feed(std::string_view bytes, const Receiver& receive);
  // The stream has ended; some servers leave out the last blank line.
  bool finish(const Receiver& receive);

 private:
  void take_line();
  bool dispatch(const Receiver& receive);

  int64_t bytes_max_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false;
  bool after_return_ = false;  // the last byte was '\r': a '\n' now belongs to it
};

}  // namespace ke::llm
