// SPDX-License-Identifier: Apache-2.0
//
// Addresses for os/http.hpp: URLs, and which proxy leads there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/http.hpp"

namespace ke::os {

struct HttpUrl {
  bool tls = false;
  std::string user;  // "user:password", percent-decoded; proxies only
  std::string host;  // without the brackets of an IPv6 address
  uint16_t port = 80;
  std::string target = "/";  // path and query

  std::string authority() const;  // "host", "host:8080", "[::1]:8080": as in the Host header
  std::string origin() const;     // "https://host:8080": for messages; holds no path and no user
  bool loopback() const;          // localhost, 127.*, ::1
};

// Errc::invalid; the message does not quote the text, which may hold a password.
Result<HttpUrl> parse_url(std::string_view text);

// The proxy that leads to `url`; absent: reached directly. Loopback addresses always are.
Result<std::optional<HttpUrl>> proxy_for(const HttpUrl& url, const HttpSettings& settings);

}  // namespace ke::os
