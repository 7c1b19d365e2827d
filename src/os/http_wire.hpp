// SPDX-License-Identifier: Apache-2.0
//
// One TCP connection, later perhaps with TLS on top, on which every wait ends at a limit or a stop.
// TLS works on memory and this file moves the bytes, so there is one place that waits.
#pragma once

#include <netdb.h>
#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/units.hpp"
#include "os/file_descriptor.hpp"
#include "os/http_url.hpp"

namespace ke::os {

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// Trusts what `settings` says, else what this system trusts. TLS 1.2 or newer.
Result<std::unique_ptr<SSL_CTX, SslDeleter>> make_tls_context(const HttpSettings& settings);

// Results of type bool: false means that a stop was asked for. Errc::timed_out: a limit passed;
// unavailable: anything else that went wrong, as a sentence without the host's name.
class Wire {
 public:
  // `stop_fd` becomes readable when the exchange shall end.
  Wire(const HttpRequest& limits, int stop_fd);

  Result<bool> open(const HttpUrl& to);
  Result<bool> secure(SSL_CTX& context, const std::string& host);
  void connected();  // from now on the limit on connecting no longer counts

  Result<bool> write(std::string_view bytes);
  // What has come, at most some KiB; empty when the other side has closed.
  Result<bool> read(std::string& bytes);

 private:
  using Time = std::chrono::steady_clock::time_point;

  Result<bool> wait(short events, Time deadline, std::string_view doing);
  Result<bool> connect_to(const addrinfo& address, Time deadline);
  Result<bool> send_raw(std::string_view bytes);
  Result<bool> receive_raw(std::string& bytes);
  Result<bool> flush_tls();
  Result<bool> feed_tls(bool& closed);
  Error tls_error(std::string_view doing) const;

  FileDescriptor socket_;
  std::unique_ptr<SSL, SslDeleter> ssl_;
  int stop_fd_;
  Time connect_deadline_, total_deadline_;
  Nanoseconds idle_max_;
};

}  // namespace ke::os
