// SPDX-License-Identifier: Apache-2.0
#include "llm/rate_limit.hpp"

#include <time.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace ke::llm {

namespace {

constexpr double kLongestMs = 1e11;  // some years; what is longer is nonsense

std::optional<Milliseconds> milliseconds(double count) {
  if (!std::isfinite(count) || count > kLongestMs) return std::nullopt;
  return Milliseconds(static_cast<int64_t>(std::ceil(std::max(count, 0.0))));
}

// "1h2m3.5s", "88ms"; a bare number is in seconds.
std::optional<Milliseconds> parse_duration(std::string_view text) {
  double total = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  if (at == end) return std::nullopt;
  while (at != end) {
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    const char* unit_end = std::find_if(next, end, [](char c) { return c < 'a' || c > 'z'; });
    const std::string_view unit(next, static_cast<size_t>(unit_end - next));
    if (unit == "ms") {
      total += value;
    } else if (unit == "s" || (unit.empty() && unit_end == end)) {
      total += value * 1e3;
    } else if (unit == "m") {
      total += value * 60e3;
    } else if (unit == "h") {
      total += value * 3600e3;
    } else if (unit == "d") {
      total += value * 86400e3;
    } else {
      return std::nullopt;
    }
    at = unit_end;
  }
  return milliseconds(total);
}

std::optional<Milliseconds> parse_date(const std::string& text, int64_t now_utc_ms) {
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%a, %d %b %Y %H:%M:%S GMT"}) {
    tm time{};
    if (::strptime(text.c_str(), format, &time) == nullptr) continue;
    return milliseconds(static_cast<double>(::timegm(&time)) * 1e3 -
                        static_cast<double>(now_utc_ms));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Milliseconds> parse_wait(std::string_view text, int64_t now_utc_ms) {
  if (const auto duration = parse_duration(text)) return duration;
  return parse_date(std::string(text), now_utc_ms);
}

std::optional<Milliseconds> asked_wait(const os::HttpResponse& response, int64_t now_utc_ms) {
  if (const std::string* text = response.header("retry-after-ms")) {
    if (const auto wait = parse_wait(*text + "ms", now_utc_ms)) return wait;
  }
  if (const std::string* text = response.header("retry-after")) {
    if (const auto wait = parse_wait(*text, now_utc_ms)) return wait;
  }
  // Two spellings of the same: x-ratelimit-remaining-KIND, anthropic-ratelimit-KIND-remaining.
  std::optional<Milliseconds> longest;
  for (const std::string kind : {"requests", "tokens", "input-tokens", "output-tokens"}) {
    for (const auto& [remaining, reset] :
         {std::pair{"x-ratelimit-remaining-" + kind, "x-ratelimit-reset-" + kind},
          std::pair{"anthropic-ratelimit-" + kind + "-remaining",
                    "anthropic-ratelimit-" + kind + "-reset"}}) {
      const std::string* left = response.header(remaining);
      const std::string* until = response.header(reset);
      if (left == nullptr || until == nullptr || *left != "0") continue;
      const auto wait = parse_wait(*until, now_utc_ms);
      if (wait && (!longest || *wait > *longest)) longest = wait;
    }
  }
  return longest;
}

}  // namespace ke::llm
