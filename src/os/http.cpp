// SPDX-License-Identifier: Apache-2.0
//
// See docs/decisions/0007 on why this is not somebody else's library.
#include "os/http.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include "os/http_parser.hpp"
#include "os/http_url.hpp"
#include "os/http_wire.hpp"
#include "os/stop_event.hpp"

namespace ke::os {

namespace {

bool one_line(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == 0; });
}

std::string basic_credentials(const std::string& user) {
  std::string encoded(4 * ((user.size() + 2) / 3) + 1, 0);
  const int count = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(user.data()),
                                    static_cast<int>(user.size()));
  encoded.resize(static_cast<size_t>(count));
  return "Proxy-Authorization: Basic " + encoded + "\r\n";
}

Result<std::string> head_of(const HttpRequest& request, const HttpUrl& url,
                            const std::optional<HttpUrl>& proxy) {
  const bool through_proxy = proxy && !url.tls;  // a tunnel hides the request from the proxy
  std::string head = "POST " + (through_proxy ? url.origin() : "") + url.target +
                     " HTTP/1.1\r\nHost: " + url.authority() +
                     "\r\nConnection: close\r\nAccept-Encoding: identity\r\nContent-Length: " +
                     std::to_string(request.body.size()) + "\r\n";
  if (through_proxy && !proxy->user.empty()) head += basic_credentials(proxy->user);
  for (const HttpHeader& header : request.headers) {
    if (!one_line(header.name) || !one_line(header.value)) {
      return Error{Errc::invalid, "the request header " + header.name.substr(0, 40) +
                                      " has a value of more than one line; check the key"};
    }
    head += header.name + ": " + header.value + "\r\n";
  }
  return head + "\r\n";
}

// Asks the proxy to pass bytes on to `url`.
Result<bool> open_tunnel(Wire& wire, const HttpUrl& url, const HttpUrl& proxy) {
  std::string to = url.authority();
  if (url.port == 443) to += ":443";
  std::string head = "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n";
  if (!proxy.user.empty()) head += basic_credentials(proxy.user);
  if (!TRY(wire.write(head + "\r\n"))) return false;
  HttpResponseParser parser(0);
  std::string bytes;
  while (!parser.has_head()) {
    if (!TRY(wire.read(bytes))) return false;
    if (bytes.empty()) return Error{Errc::unavailable, "the proxy closed the connection"};
    // The proxy waits for us once it has answered, so these bytes are its head and no more; a
    // refusal's body may be among them and is not read.
    const Result<void> fed = parser.feed(bytes, [](std::string_view) { return false; });
    if (!fed && !parser.has_head()) return Error{Errc::unavailable, "the proxy speaks no HTTP"};
  }
  const int status = parser.head().status;
  if (status >= 200 && status < 300) return true;
  return Error{Errc::unavailable,
               "the proxy refuses the connection with status " + std::to_string(status)};
}

class SocketHttpClient final : public HttpClient {
 public:
  SocketHttpClient(HttpSettings settings, std::unique_ptr<SSL_CTX, SslDeleter> tls)
      : settings_(std::move(settings)), tls_(std::move(tls)) {}

  Result<HttpResponse> post(const HttpRequest& request, const HttpReceiver& receive,
                            std::stop_token stop) override {
    const HttpUrl url = TRY(parse_url(request.url));
    if (!url.user.empty()) {
      return Error{Errc::invalid, "the address holds a user name; keys belong into headers"};
    }
    const std::optional<HttpUrl> proxy = TRY(proxy_for(url, settings_));
    const std::string head = TRY(head_of(request, url, proxy));
    const StopEvent stop_event(stop);
    Wire wire(request, stop_event.fd());
    HttpResponseParser parser(request.response_bytes_max);
    const Result<bool> done = exchange(wire, parser, request.body, head, url, proxy, receive);
    if (!done) {
      Result<HttpResponse> failed = done.error();
      return std::move(failed).context("cannot complete the request to " + url.origin());
    }
    HttpResponse response = parser.has_head() ? parser.head() : HttpResponse{};
    response.stopped = !*done;
    return response;
  }

 private:
  Result<bool> connect(Wire& wire, const HttpUrl& url, const std::optional<HttpUrl>& proxy) {
    if (!TRY(wire.open(proxy ? *proxy : url))) return false;
    if (url.tls && proxy && !TRY(open_tunnel(wire, url, *proxy))) return false;
    if (url.tls && !TRY(wire.secure(*tls_, url.host))) return false;
    wire.connected();
    return true;
  }

  // False: stopped.
  Result<bool> exchange(Wire& wire, HttpResponseParser& parser, const std::string& body,
                        const std::string& head, const HttpUrl& url,
                        const std::optional<HttpUrl>& proxy, const HttpReceiver& receive) {
    if (!TRY(connect(wire, url, proxy))) return false;
    // A server may refuse before it has read everything and close; its answer is worth more than
    // the broken pipe.
    Result<bool> sent = wire.write(head);
    if (sent && *sent) sent = wire.write(body);
    if (sent && !*sent) return false;
    if (!sent && sent.error().code == Errc::timed_out) return sent;
    std::string bytes;
    while (!parser.complete()) {
      Result<bool> got = wire.read(bytes);
      if (!got) return sent ? std::move(got) : std::move(sent);
      if (!*got) return false;
      if (bytes.empty()) {
        const Result<void> closed = parser.close();
        if (!closed) return sent ? Result<bool>(closed.error()) : std::move(sent);
        break;
      }
      TRY(parser.feed(bytes, [&](std::string_view part) { return receive(parser.head(), part); }));
      if (parser.stopped()) return false;
    }
    return true;
  }

  HttpSettings settings_;
  std::unique_ptr<SSL_CTX, SslDeleter> tls_;
};

}  // namespace

Result<std::unique_ptr<HttpClient>> make_http_client(const HttpSettings& settings) {
  for (const bool tls : {false, true}) {  // a proxy's address that is none is said at the start
    HttpUrl anywhere;
    anywhere.tls = tls;
    anywhere.host = "host.invalid";
    TRY(proxy_for(anywhere, settings));
  }
  auto tls = TRY(make_tls_context(settings));
  return std::unique_ptr<HttpClient>(std::make_unique<SocketHttpClient>(settings, std::move(tls)));
}

}  // namespace ke::os
