// SPDX-License-Identifier: Apache-2.0
//
// What an endpoint says about waiting: `retry-after`, and the headers that tell how much of a
// window is left and when the next one begins.
#pragma once

#include <optional>

#include "base/units.hpp"
#include "os/http.hpp"

namespace ke::llm {

// A number of seconds, a duration ("6m0s", "88ms"), a date of RFC 3339 or of HTTP. Never negative.
std::optional<Milliseconds> parse_wait(std::string_view text, int64_t now_utc_ms);

// How long the endpoint asks to wait before the next call: retry-after, else until the window of a
// kind of which nothing remains.
std::optional<Milliseconds> asked_wait(const os::HttpResponse& response, int64_t now_utc_ms);

}  // namespace ke::llm
