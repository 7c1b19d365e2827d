// SPDX-License-Identifier: Apache-2.0
//
// Notices a dead endpoint and says so once. While it is thought dead, calls fail at once and
// available() is false; after a while, which doubles each time, one call is let through to look.
#pragma once

#include "llm/provider.hpp"

namespace ke::llm {

struct BreakerOptions {
  int failures_max = 2;  // in a row, each after all its retries; a wrong key counts full
  Milliseconds closed_first{30'000};
  Milliseconds closed_max{600'000};
};

// Emits "llm.dead" {provider, kind, message, retry_ms} and "llm.alive" {provider} to `events` from
// the calling thread, each once a change.
std::unique_ptr<Provider> with_breaker(std::unique_ptr<Provider> inner, os::Clock& clock,
                                       EventSink& events, const BreakerOptions& options = {});

}  // namespace ke::llm
