// SPDX-License-Identifier: Apache-2.0
//
// What a provider needs to be opened in a test: nothing leaves the machine, and time stands still.
#pragma once

#include <map>
#include <mutex>

#include "base/json.hpp"
#include "llm/provider.hpp"
#include "os/fake_http.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

struct KeptEvents final : EventSink {
  void emit(std::string_view name, const Json& fields) override {
    const std::lock_guard lock(mutex);
    text += std::string(name) + " " + dump_json(fields) + "\n";
  }
  std::mutex mutex;
  std::string text;
};

struct Bench {
  explicit Bench(std::map<std::string, std::string> values = {}) : environment(std::move(values)) {}

  ProviderContext context() { return {clock, http, environment, limits, events, Rng(1)}; }
  // Without retry and breaker.
  std::unique_ptr<Provider> bare(std::string_view spec) {
    const size_t colon = spec.find(':');
    return find_provider(spec.substr(0, colon))->make(spec.substr(colon + 1), context()).value();
  }

  os::FakeClock clock;
  os::FakeHttpClient http;
  Environment environment;
  Limits limits;
  KeptEvents events;
  os::TemporaryDirectory folder = os::TemporaryDirectory::create().value();
};

inline CompletionRequest question(std::string text, std::string stable = {}) {
  return {std::move(stable), {{Role::user, std::move(text)}}};
}

}  // namespace ke::llm
