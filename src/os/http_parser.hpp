// SPDX-License-Identifier: Apache-2.0
//
// Reads an HTTP/1.1 response piece by piece (RFC 9112): status, headers, and a body that is
// chunked, counted, or as long as the connection. The bytes are hostile; what they can make this
// hold is limited.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/http.hpp"

namespace ke::os {

class HttpResponseParser {
 public:
  using Sink = std::function<bool(std::string_view)>;  // false: no more, please

  explicit HttpResponseParser(int64_t body_bytes_max) : body_left_max_(body_bytes_max) {}

  // Takes the next bytes of the connection and hands body bytes to `sink`. Errc::unavailable when
  // this is no HTTP or too much of it. Bytes after the end are ignored.
  Result<void> feed(std::string_view bytes, const Sink& sink);

  // The other side has closed. An error unless that is how this response ends.
  Result<void> close();

  bool complete() const { return state_ == State::complete; }
  bool has_head() const { return state_ != State::head; }
  bool stopped() const { return stopped_; }  // the sink said no more
  const HttpResponse& head() const { return response_; }

 private:
  enum class State : uint8_t {
    head,
    counted,
    until_close,
    chunk_size,
    chunk_data,
    chunk_end,
    trailers,
    complete
  };

  Result<bool> step(std::string_view& bytes, const Sink& sink);
  Result<bool> read_line(std::string_view& bytes, size_t bytes_max);
  Result<void> take_head_line();
  Result<void> end_head();
  Result<void> take_chunk_size();
  Result<void> take_body(std::string_view& bytes, const Sink& sink);

  State state_ = State::head;
  HttpResponse response_;
  std::string line_;         // what has come of the current line
  size_t head_bytes_ = 0;
  int64_t left_ = 0;         // of the counted body or the current chunk
  int64_t body_left_max_;
  bool stopped_ = false;
};

}  // namespace ke::os
