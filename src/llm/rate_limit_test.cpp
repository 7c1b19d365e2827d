// SPDX-License-Identifier: Apache-2.0
#include "llm/rate_limit.hpp"

#include <gtest/gtest.h>

namespace ke::llm {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;  // 2023-11-14T22:13:20Z

int64_t wait_ms(std::string_view text) {
  const auto wait = parse_wait(text, kNow);
  return wait ? wait->count() : -1;
}

TEST(RateLimit, ReadsEveryWayToSayHowLong) {
  EXPECT_EQ(wait_ms("7"), 7000);
  EXPECT_EQ(wait_ms("0.25"), 250);
  EXPECT_EQ(wait_ms("6m0s"), 360'000);
  EXPECT_EQ(wait_ms("1h2m3.5s"), 3'723'500);
  EXPECT_EQ(wait_ms("88ms"), 88);
  EXPECT_EQ(wait_ms("2023-11-14T22:14:20Z"), 60'000);
  EXPECT_EQ(wait_ms("Tue, 14 Nov 2023 22:13:50 GMT"), 30'000);
  EXPECT_EQ(wait_ms("2020-01-01T00:00:00Z"), 0);  // past
  EXPECT_EQ(wait_ms("-3"), 0);
}

TEST(RateLimit, IgnoresWhatItCannotRead) {
  for (const char* text : {"", "soon", "7x", "5 minutes", "1e999", "999999999999999", "nan", "m"}) {
    EXPECT_EQ(wait_ms(text), -1) << text;
  }
}

os::HttpResponse response(std::vector<os::HttpHeader> headers) { return {429, std::move(headers)}; }

TEST(RateLimit, PrefersRetryAfterAndElseTheWindowThatIsUsedUp) {
  EXPECT_FALSE(asked_wait(response({}), kNow));
  EXPECT_EQ(asked_wait(response({{"retry-after-ms", "1500"}, {"Retry-After", "9"}}), kNow)->count(),
            1500);
  EXPECT_EQ(asked_wait(response({{"Retry-After", "9"},
                                 {"x-ratelimit-remaining-tokens", "0"},
                                 {"x-ratelimit-reset-tokens", "1s"}}),
                       kNow)
                ->count(),
            9000);
  EXPECT_EQ(asked_wait(response({{"x-ratelimit-remaining-tokens", "0"},
                                 {"x-ratelimit-reset-tokens", "6m0s"},
                                 {"x-ratelimit-remaining-requests", "0"},
                                 {"x-ratelimit-reset-requests", "2s"}}),
                       kNow)
                ->count(),
            360'000);
  const std::string kind = "anthropic-ratelimit-input-tokens-";
  EXPECT_EQ(asked_wait(response({{kind + "remaining", "0"},
                                 {kind + "reset", "2023-11-14T22:13:40Z"}}),
                       kNow)
                ->count(),
            20'000);
  EXPECT_FALSE(asked_wait(response({{"x-ratelimit-remaining-tokens", "7"},
                                    {"x-ratelimit-reset-tokens", "6m0s"}}),
                          kNow));
}

}  // namespace
}  // namespace ke::llm
