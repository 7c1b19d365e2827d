// SPDX-License-Identifier: Apache-2.0
//
// An HttpClient that answers from a script, in order, and keeps what it was asked.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "os/http.hpp"

namespace ke::os {

struct FakeReply {
  int status = 200;
  std::vector<HttpHeader> headers = {};
  std::vector<std::string> chunks = {};
  std::optional<Error> error = {};  // after the chunks: a cut, a passed limit
};

class FakeHttpClient final : public HttpClient {
 public:
  explicit FakeHttpClient(std::deque<FakeReply> replies = {}) : replies_(std::move(replies)) {}

  void add(FakeReply reply) { replies_.push_back(std::move(reply)); }
  const std::vector<HttpRequest>& requests() const { return requests_; }

  Result<HttpResponse> post(const HttpRequest& request, const HttpReceiver& receive,
                            std::stop_token stop) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (replies_.empty()) return Error{Errc::unavailable, "the script holds no further reply"};
    const FakeReply reply = std::move(replies_.front());
    replies_.pop_front();
    HttpResponse response{reply.status, reply.headers};
    for (const std::string& chunk : reply.chunks) {
      response.stopped = stop.stop_requested() || !receive(response, chunk);
      if (response.stopped) return response;
    }
    if (reply.error) return *reply.error;
    return response;
  }

 private:
  std::mutex mutex_;
  std::deque<FakeReply> replies_;
  std::vector<HttpRequest> requests_;
};

}  // namespace ke::os
