// SPDX-License-Identifier: Apache-2.0
#include "os/http_wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/file_system.hpp"

namespace ke::os {

namespace {

constexpr size_t kPieceBytes = 16 << 10;

// Where systems keep the authorities they trust; OpenSSL's own default is the place of the machine
// it was built on.
constexpr const char* kBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Alpine, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",  // SUSE
    "/etc/ssl/cert.pem"};

Error lost(int reason, std::string_view doing) {
  return Error{reason == ETIMEDOUT ? Errc::timed_out : Errc::unavailable,
               std::string(doing) + ": " + std::strerror(reason)};
}

struct AddressDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

}  // namespace

Result<std::unique_ptr<SSL_CTX, SslDeleter>> make_tls_context(const HttpSettings& settings) {
  std::unique_ptr<SSL_CTX, SslDeleter> context(SSL_CTX_new(TLS_client_method()));
  if (!context) return Error{Errc::internal, "OpenSSL cannot be started"};
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (!settings.cert_file.empty()) {
    if (SSL_CTX_load_verify_file(context.get(), settings.cert_file.c_str()) != 1) {
      return Error{Errc::invalid, "SSL_CERT_FILE is " + settings.cert_file +
                                      ", which holds no certificates; correct or unset it"};
    }
  } else {
    const auto found =
        std::ranges::find_if(kBundles, [](const char* path) { return exists(path); });
    if (found != std::end(kBundles)) SSL_CTX_load_verify_file(context.get(), *found);
  }
  const std::string folders = settings.cert_dir.empty() ? "/etc/ssl/certs" : settings.cert_dir;
  SSL_CTX_load_verify_dir(context.get(), folders.c_str());
  ERR_clear_error();
  return context;
}

Wire::Wire(const HttpRequest& limits, int stop_fd)
    : stop_fd_(stop_fd), idle_max_(limits.idle_max) {
  const Time now = std::chrono::steady_clock::now();
  total_deadline_ = now + limits.total_max;
  connect_deadline_ = std::min(total_deadline_, now + limits.connect_max);
}

void Wire::connected() { connect_deadline_ = Time::max(); }

Result<bool> Wire::wait(short events, Time deadline, std::string_view doing) {
  const Time idle = std::chrono::steady_clock::now() + idle_max_;
  const Time end = std::min({deadline, connect_deadline_, total_deadline_, idle});
  while (true) {
    const Nanoseconds left = end - std::chrono::steady_clock::now();
    if (left.count() <= 0) {
      const char* which = end == idle              ? "the server was silent for too long"
                          : end == total_deadline_ ? "the whole exchange took too long"
                                                   : "it took too long";
      return Error{Errc::timed_out, std::string(doing) + ": " + which};
    }
    const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    pollfd waited[2] = {{socket_.get(), events, 0}, {stop_fd_, POLLIN, 0}};
    const int ready = ::ppoll(waited, 2, &time, nullptr);
    if (ready < 0 && errno != EINTR) return lost(errno, doing);
    if (ready <= 0) continue;
    if (waited[1].revents != 0) return false;
    return true;
  }
}

Result<bool> Wire::open(const HttpUrl& to) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  if (is_address(to.host)) hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  addrinfo* list = nullptr;
  const int failed =
      ::getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &hints, &list);
  if (failed != 0) {
    return Error{Errc::unavailable,
                 std::string("the host's name is not known: ") + gai_strerror(failed)};
  }
  const std::unique_ptr<addrinfo, AddressDeleter> addresses(list);
  int count = 0;
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) ++count;
  Result<bool> opened = Error{Errc::unavailable, "the host has no address"};
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next, --count) {
    // One dead address must not use up the time of the others.
    const Time now = std::chrono::steady_clock::now();
    opened = connect_to(*a, now + (connect_deadline_ - now) / count);
    if (opened) return opened;
  }
  return opened;
}

Result<bool> Wire::connect_to(const addrinfo& address, Time deadline) {
  socket_ = FileDescriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                    address.ai_protocol));
  if (!socket_.valid()) return lost(errno, "connecting");
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return lost(errno, "connecting");
  if (!TRY(wait(POLLOUT, deadline, "connecting"))) return false;
  int reason = 0;
  socklen_t size = sizeof reason;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
  if (reason != 0) return lost(reason, "connecting");
  return true;
}

Result<bool> Wire::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!TRY(wait(POLLOUT, Time::max(), "sending"))) return false;
    } else if (errno != EINTR) {
      return lost(errno, "sending");
    }
  }
  return true;
}

Result<bool> Wire::receive_raw(std::string& bytes) {
  bytes.resize(kPieceBytes);
  while (true) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count >= 0) {
      bytes.resize(static_cast<size_t>(count));
      return true;
    }
    if (errno == EAGAIN) {
      if (!TRY(wait(POLLIN, Time::max(), "waiting for the answer"))) return false;
    } else if (errno != EINTR) {
      return lost(errno, "receiving");
    }
  }
}

Error Wire::tls_error(std::string_view doing) const {
  const long verdict = SSL_get_verify_result(ssl_.get());
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (verdict != X509_V_OK) {
    return Error{Errc::unavailable, std::string("its certificate is not trusted: ") +
                                        X509_verify_cert_error_string(verdict) +
                                        "; SSL_CERT_FILE may name an authority of your own"};
  }
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return Error{Errc::unavailable, std::string(doing) + ": " +
                                      (reason == nullptr ? "the connection broke" : reason)};
}

Result<bool> Wire::flush_tls() {
  char piece[kPieceBytes];
  while (BIO_pending(SSL_get_wbio(ssl_.get())) > 0) {
    const int count = BIO_read(SSL_get_wbio(ssl_.get()), piece, sizeof piece);
    if (count <= 0) break;
    if (!TRY(send_raw({piece, static_cast<size_t>(count)}))) return false;
  }
  return true;
}

Result<bool> Wire::feed_tls(bool& closed) {
  std::string bytes;
  if (!TRY(flush_tls())) return false;
  if (!TRY(receive_raw(bytes))) return false;
  closed = bytes.empty();
  BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
  return true;
}

Result<bool> Wire::secure(SSL_CTX& context, const std::string& host) {
  ssl_.reset(SSL_new(&context));
  if (!ssl_) return Error{Errc::internal, "OpenSSL cannot make a session"};
  BIO* incoming = BIO_new(BIO_s_mem());
  BIO* outgoing = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl_.get(), incoming, outgoing);  // owns both now
  SSL_set_connect_state(ssl_.get());
  X509_VERIFY_PARAM* expected = SSL_get0_param(ssl_.get());
  const bool address = is_address(host);
  const int named = address ? X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str())
                            : X509_VERIFY_PARAM_set1_host(expected, host.data(), host.size());
  if (named != 1) return Error{Errc::invalid, "the host's name cannot be checked by TLS"};
  if (!address) SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  SSL_set_alpn_protos(ssl_.get(), kProtocols, sizeof kProtocols - 1);
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return flush_tls();
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
      const Error error = tls_error("TLS");
      (void)flush_tls();  // the alert tells the other side why
      return error;
    }
    bool closed = false;
    if (!TRY(feed_tls(closed))) return false;
    if (closed) return Error{Errc::unavailable, "TLS: the server closed the connection"};
  }
}

Result<bool> Wire::write(std::string_view bytes) {
  if (!ssl_) return send_raw(bytes);
  while (!bytes.empty()) {
    ERR_clear_error();
    const auto count = static_cast<int>(std::min(bytes.size(), kPieceBytes));
    const int written = SSL_write(ssl_.get(), bytes.data(), count);
    if (written <= 0) return tls_error("sending");
    bytes.remove_prefix(static_cast<size_t>(written));
    if (!TRY(flush_tls())) return false;
  }
  return true;
}

Result<bool> Wire::read(std::string& bytes) {
  if (!ssl_) return receive_raw(bytes);
  while (true) {
    ERR_clear_error();
    bytes.resize(kPieceBytes);
    const int count = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(static_cast<size_t>(std::max(count, 0)));
    if (count > 0) return true;
    const int reason = SSL_get_error(ssl_.get(), count);
    if (reason == SSL_ERROR_ZERO_RETURN) return true;
    if (reason != SSL_ERROR_WANT_READ) return tls_error("receiving");
    bool closed = false;
    if (!TRY(feed_tls(closed))) return false;
    if (closed) return true;  // the HTTP layer knows whether something is missing
  }
}

}  // namespace ke::os
