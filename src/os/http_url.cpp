// SPDX-License-Identifier: Apache-2.0
#include "os/http_url.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>

namespace ke::os {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return lower(c); });
  return result;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      result += static_cast<char>(value);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "example.com" and ".example.com" also stand for what is below them; "host:port" for that port.
bool exempt(const HttpUrl& url, std::string_view entry) {
  entry = without_blanks(entry);
  if (entry == "*") return true;
  const size_t colon = entry.rfind(':');
  if (colon != std::string_view::npos && entry.find(':') == colon) {
    if (parse_port(entry.substr(colon + 1)) != url.port) return false;
    entry = entry.substr(0, colon);
  }
  while (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty()) return false;
  const std::string host = lower(url.host), suffix = lower(entry);
  return host == suffix || host.ends_with("." + suffix);
}

std::string variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != 0) return value;
  }
  return {};
}

}  // namespace

std::string HttpUrl::authority() const {
  std::string text = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

std::string HttpUrl::origin() const { return (tls ? "https://" : "http://") + authority(); }

bool HttpUrl::loopback() const {
  return lower(host) == "localhost" || host.starts_with("127.") || host == "::1";
}

Result<HttpUrl> parse_url(std::string_view text) {
  HttpUrl url;
  const size_t scheme_end = text.find("://");
  const std::string scheme = lower(text.substr(0, std::min(scheme_end, text.size())));
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return Error{Errc::invalid, "the address does not begin with http:// or https://"};
  }
  if (!printable(text)) return Error{Errc::invalid, "the address holds blanks or controls"};
  url.tls = scheme == "https";
  url.port = url.tls ? 443 : 80;
  text.remove_prefix(scheme_end + 3);
  const size_t path = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, path);
  std::string_view target = text.substr(path);
  target = target.substr(0, target.find('#'));
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    url.user = percent_decoded(authority.substr(0, at));
    authority.remove_prefix(at + 1);
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) {
      return Error{Errc::invalid, "the address opens a bracket that it does not close"};
    }
    url.host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (url.host.empty()) return Error{Errc::invalid, "the address names no host"};
  if (port.empty() || port == ":") return url;
  const std::optional<uint16_t> number =
      port.starts_with(':') ? parse_port(port.substr(1)) : std::nullopt;
  if (!number) return Error{Errc::invalid, "the port in the address is not a number to 65535"};
  url.port = *number;
  return url;
}

Result<std::optional<HttpUrl>> proxy_for(const HttpUrl& url, const HttpSettings& settings) {
  const std::string& text = url.tls ? settings.https_proxy : settings.http_proxy;
  if (text.empty() || url.loopback()) return std::optional<HttpUrl>();
  std::string_view exemptions = settings.no_proxy;
  while (!exemptions.empty()) {
    const size_t comma = std::min(exemptions.find(','), exemptions.size());
    if (exempt(url, exemptions.substr(0, comma))) return std::optional<HttpUrl>();
    exemptions.remove_prefix(std::min(comma + 1, exemptions.size()));
  }
  const bool bare = text.find("://") == std::string::npos;  // "proxy:3128" is common
  HttpUrl proxy = TRY(parse_url(bare ? "http://" + text : text).context("the proxy"));
  if (proxy.tls) {
    return Error{Errc::invalid, "a proxy that is itself reached through https is not supported; "
                                "name it as http://host:port"};
  }
  return std::optional<HttpUrl>(std::move(proxy));
}

HttpSettings HttpSettings::from_environment() {
  HttpSettings settings;
  settings.http_proxy = variable({"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"});
  settings.https_proxy = variable({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  settings.no_proxy = variable({"no_proxy", "NO_PROXY"});
  settings.cert_file = variable({"SSL_CERT_FILE"});
  settings.cert_dir = variable({"SSL_CERT_DIR"});
  return settings;
}

}  // namespace ke::os
