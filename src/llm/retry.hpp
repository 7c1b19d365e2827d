// SPDX-License-Identifier: Apache-2.0
//
// Tries again what fails in passing: unreachable, rate_limited, overloaded, malformed, timed_out.
// Waits as long as the endpoint asks, else a random part of a doubling delay, so that several
// callers do not return at the same moment. A pause that an endpoint asks for with a success is
// kept before the next call.
#pragma once

#include "llm/provider.hpp"

namespace ke::llm {

struct RetryOptions {
  int attempts_max = 5;
  Milliseconds delay_first{1'000};
  Milliseconds delay_max{60'000};
  Milliseconds wait_max{300'000};  // an endpoint that asks for more is not waited for
};

// `rng` and `clock` decide the waiting. Emits "llm.retry" {provider, kind, message, attempt,
// wait_ms} to `events` from the calling thread.
std::unique_ptr<Provider> with_retry(std::unique_ptr<Provider> inner, os::Clock& clock, Rng rng,
                                     EventSink& events, const RetryOptions& options = {});

// Whether the same call may succeed later: none of the caller's doing.
bool passes_by_itself(FailureKind kind);

// Sleeps by the clock in short steps. False when a stop was asked for.
bool sleep_unless_stopped(os::Clock& clock, Nanoseconds duration, const std::stop_token& stop);

}  // namespace ke::llm
