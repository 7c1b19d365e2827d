// SPDX-License-Identifier: Apache-2.0
#include "llm/environment.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

namespace {

bool names_a_secret(std::string_view name) {
  return name.ends_with("_KEY") || name.ends_with("_TOKEN") || name.ends_with("_SECRET") ||
         name.ends_with("_PASSWORD");
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && std::ranges::all_of(text, letter);
}

// The value of a line of a .env file: quotes around it are taken off, a comment after it is cut.
std::string value_of(std::string_view text) {
  const char quote = text.empty() ? ' ' : text.front();
  if (quote == '"' || quote == '\'') {
    const size_t end = text.find(quote, 1);
    if (end != std::string_view::npos) return std::string(text.substr(1, end - 1));
  }
  return std::string(trimmed(text.substr(0, text.find(" #"))));
}

Result<void> read_lines(std::string_view text, const std::filesystem::path& path,
                        std::map<std::string, std::string>& values) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    if (line.empty() || line.starts_with('#')) continue;
    const size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    if (equals == std::string_view::npos || !is_name(name)) {
      return Error{Errc::invalid, path.string() + " is not NAME=value in line " +
                                      std::to_string(number) + "; correct or remove that line"};
    }
    values[std::string(name)] = value_of(trimmed(line.substr(equals + 1)));
  }
  return {};
}

}  // namespace

Result<Environment> Environment::load(const std::filesystem::path& dotenv) {
  std::map<std::string, std::string> values;
  if (!dotenv.empty() && os::exists(dotenv)) {
    const std::string text = TRY(os::read_file(dotenv, 1_MiB));
    TRY(read_lines(text, dotenv, values));
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    values[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
  }
  return Environment(std::move(values));
}

std::optional<std::string> Environment::text(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty() || names_a_secret(name)) return std::nullopt;
  return found->second;
}

std::optional<Secret> Environment::secret(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return Secret(found->second);
}

std::string Environment::redact(std::string_view text) const {
  std::string result(text);
  for (const auto& [name, value] : values_) {
    if (names_a_secret(name) && !value.empty()) result = Secret(value).redact(result);
  }
  return result;
}

std::vector<std::string> Environment::for_child() const {
  static constexpr std::string_view kPassed[] = {
      "PATH",          "HOME",         "USER",       "LOGNAME",    "SHELL",       "TMPDIR",
      "LANG",          "TERM",         "TZ",         "NO_PROXY",   "no_proxy",    "XDG_CACHE_HOME",
      "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy",
      "ALL_PROXY",     "all_proxy",    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"};
  std::vector<std::string> result;
  for (const auto& [name, value] : values_) {
    const bool passed = std::ranges::find(kPassed, name) != std::end(kPassed);
    if (passed || (name.starts_with("LC_") && !names_a_secret(name))) {
      result.push_back(name + "=" + value);
    }
  }
  return result;
}

}  // namespace ke::llm
