// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.hpp"

#include <utility>

namespace ke::llm {

Result<bool> SseReader::feed(std::string_view bytes, const Receiver& receive) {
  for (const char c : bytes) {
    if (std::exchange(after_return_, c == '\r') && c == '\n') continue;
    if (c != '\n' && c != '\r') {
      line_ += c;
      if (static_cast<int64_t>(line_.size() + event_.data.size()) > bytes_max_) {
        return Error{Errc::invalid, "an event of the stream is larger than allowed"};
      }
      continue;
    }
    if (line_.empty()) {
      if (!dispatch(receive)) return false;
    } else {
      take_line();
    }
    line_.clear();
  }
  return true;
}

bool SseReader::finish(const Receiver& receive) {
  if (!line_.empty()) take_line();
  line_.clear();
  return dispatch(receive);
}

void SseReader::take_line() {
  std::string_view line = line_;
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }  // comments, ids and the like mean nothing to us
}

bool SseReader::dispatch(const Receiver& receive) {
  const SseEvent event = std::exchange(event_, {});
  return !std::exchange(has_data_, false) || receive(event);
}

}  // namespace ke::llm
