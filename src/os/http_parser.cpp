// SPDX-License-Identifier: Apache-2.0
#include "os/http_parser.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace ke::os {

namespace {

constexpr size_t kHeadBytesMax = 128 << 10;
constexpr size_t kChunkLineMax = 4 << 10;

Error not_http(std::string_view what) {
  return Error{Errc::unavailable, "the server's answer is not proper HTTP: " + std::string(what)};
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> number(std::string_view text, int base) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

const std::string* HttpResponse::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const HttpHeader& h) { return same_name(h.name, name); });
  return found == headers.end() ? nullptr : &found->value;
}

Result<void> HttpResponseParser::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty() && !complete() && !stopped_) {
    if (!TRY(step(bytes, sink))) return {};
  }
  return {};
}

// False: more bytes are needed.
Result<bool> HttpResponseParser::step(std::string_view& bytes, const Sink& sink) {
  switch (state_) {
    case State::head:
      if (!TRY(read_line(bytes, kHeadBytesMax - head_bytes_))) return false;
      head_bytes_ += line_.size() + 2;
      TRY(take_head_line());
      break;
    case State::counted:
    case State::until_close:
    case State::chunk_data:
      TRY(take_body(bytes, sink));
      break;
    case State::chunk_size:
      if (!TRY(read_line(bytes, kChunkLineMax))) return false;
      TRY(take_chunk_size());
      break;
    case State::chunk_end:
      if (!TRY(read_line(bytes, kChunkLineMax))) return false;
      if (!line_.empty()) return not_http("a chunk is longer than it says");
      state_ = State::chunk_size;
      break;
    case State::trailers:
      if (!TRY(read_line(bytes, kChunkLineMax))) return false;
      if (line_.empty()) state_ = State::complete;
      break;
    case State::complete:
      return false;
  }
  line_.clear();
  return true;
}

// True: line_ holds a whole line, without its end.
Result<bool> HttpResponseParser::read_line(std::string_view& bytes, size_t bytes_max) {
  const size_t end = bytes.find('\n');
  line_.append(bytes.substr(0, end));
  if (line_.size() > bytes_max) return not_http("its head is too long");
  if (end == std::string_view::npos) {
    bytes = {};
    return false;
  }
  bytes.remove_prefix(end + 1);
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

Result<void> HttpResponseParser::take_head_line() {
  if (response_.status == 0) {
    const std::string_view line = line_;
    const auto status = line.size() >= 12 ? number(line.substr(9, 3), 10) : std::nullopt;
    if (!status || *status < 100 || !line.starts_with("HTTP/1.") || line[8] != ' ') {
      return not_http("it does not begin with a status");
    }
    response_.status = static_cast<int>(*status);
    return {};
  }
  if (line_.empty()) return end_head();
  const size_t colon = line_.find(':');
  if (colon == std::string::npos || colon == 0) return not_http("a header has no name");
  const std::string_view line = line_;
  response_.headers.push_back(
      {std::string(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1)))});
  return {};
}

Result<void> HttpResponseParser::end_head() {
  if (response_.status < 200 && response_.status != 101) {  // 100 Continue and the like: go on
    response_ = {};
    return {};
  }
  if (const std::string* coding = response_.header("content-encoding");
      coding != nullptr && !same_name(*coding, "identity")) {
    return not_http("it is compressed, which was not asked for");
  }
  if (const std::string* coding = response_.header("transfer-encoding"); coding != nullptr) {
    if (!same_name(*coding, "chunked")) return not_http("its transfer encoding is unknown");
    state_ = State::chunk_size;
    return {};
  }
  std::optional<int64_t> length;
  for (const HttpHeader& header : response_.headers) {
    if (!same_name(header.name, "content-length")) continue;
    const std::optional<int64_t> value = number(header.value, 10);
    if (!value || (length && *length != *value)) return not_http("its length is no number");
    length = value;
  }
  const bool bodiless = response_.status == 204 || response_.status == 304;
  if (bodiless || length == 0) {
    state_ = State::complete;
  } else {
    state_ = length ? State::counted : State::until_close;
    left_ = length.value_or(std::numeric_limits<int64_t>::max());
  }
  return {};
}

Result<void> HttpResponseParser::take_chunk_size() {
  const std::string_view digits = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  const std::optional<int64_t> size = number(digits, 16);
  if (!size) return not_http("a chunk's length is no number");
  left_ = *size;
  state_ = *size == 0 ? State::trailers : State::chunk_data;
  return {};
}

Result<void> HttpResponseParser::take_body(std::string_view& bytes, const Sink& sink) {
  const auto count = static_cast<size_t>(std::min(left_, static_cast<int64_t>(bytes.size())));
  body_left_max_ -= static_cast<int64_t>(count);
  if (body_left_max_ < 0) {
    return Error{Errc::unavailable, "the server's answer is larger than allowed"};
  }
  if (state_ != State::until_close) left_ -= static_cast<int64_t>(count);
  stopped_ = !sink(bytes.substr(0, count));
  bytes.remove_prefix(count);
  if (left_ == 0) state_ = state_ == State::counted ? State::complete : State::chunk_end;
  return {};
}

Result<void> HttpResponseParser::close() {
  if (state_ == State::until_close) state_ = State::complete;
  if (complete()) return {};
  const char* when = has_head() ? "in the middle of its answer" : "without an answer";
  return Error{Errc::unavailable, std::string("the server closed the connection ") + when};
}

}  // namespace ke::os
