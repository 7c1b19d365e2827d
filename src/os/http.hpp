// SPDX-License-Identifier: Apache-2.0
//
// One streaming POST over HTTP/1.1, with TLS: all that talking to a language model needs. Bytes of
// the answer are handed over as they arrive, and the receiver may end the exchange at any chunk.
// Redirects are not followed, so a key in a header goes to no other place than was asked for.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"

namespace ke::os {

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string url;                  // "https://host[:port]/path"; http as well
  std::vector<HttpHeader> headers;  // may hold keys: no error of ours quotes one
  std::string body;
  Milliseconds connect_max{20'000};     // from the call to a connection that is ready to be used
  Milliseconds idle_max{300'000};       // no byte went or came for so long
  Milliseconds total_max{1'800'000};    // the whole exchange
  int64_t response_bytes_max = 64_MiB;  // of the body, after decoding
};

struct HttpResponse {
  int status = 0;
  std::vector<HttpHeader> headers;
  bool stopped = false;  // the receiver or the stop token ended it; the body is not whole

  // The first value of that name, in any case; null when absent.
  const std::string* header(std::string_view name) const;
};

// Gets a piece of the body, beside the status and headers. False ends the exchange.
using HttpReceiver = std::function<bool(const HttpResponse& head, std::string_view bytes)>;

// Safe to call from many threads.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Any status is a success of post(). Errc::invalid: the URL is at fault; timed_out: a limit
  // passed; unavailable: no connection, no trust (TLS), a cut in the middle, not HTTP, or too much.
  // A stop during the exchange gives a response with `stopped` (status 0 when none had come).
  // Looking up a host's name obeys the resolver's own limits.
  virtual Result<HttpResponse> post(const HttpRequest& request, const HttpReceiver& receive,
                                    std::stop_token stop) = 0;
};

// What the environment says about reaching the world; read once, at the start.
struct HttpSettings {
  std::string http_proxy;   // "http://[user:password@]host:port"; empty: none
  std::string https_proxy;  // the same; TLS is tunnelled through it (CONNECT)
  std::string no_proxy;     // "host,.domain,*": what is reached directly
  std::string cert_file;    // authorities to trust instead of the system's file of them
  std::string cert_dir;     // "dir:dir", with hashed names, instead of the system's folder

  // HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY in either case; SSL_CERT_FILE, SSL_CERT_DIR.
  static HttpSettings from_environment();
};

// The real one, over sockets and OpenSSL. Errc::invalid when a certificate file cannot be read or a
// proxy's address is none.
Result<std::unique_ptr<HttpClient>> make_http_client(const HttpSettings& settings);

}  // namespace ke::os
