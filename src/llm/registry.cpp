// SPDX-License-Identifier: Apache-2.0
//
// The providers that were built in; CMake writes providers.inc from the folders beside this file.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "llm/breaker.hpp"
#include "llm/embedder.hpp"
#include "llm/provider.hpp"
#include "llm/retry.hpp"

namespace ke::llm {

#define KE_PROVIDER(name) extern const ProviderInfo provider_##name;
#include "providers.inc"
#undef KE_PROVIDER

std::span<const ProviderInfo* const> all_providers() {
#define KE_PROVIDER(name) &provider_##name,
  static const std::array providers = {
#include "providers.inc"
  };
#undef KE_PROVIDER
  return providers;
}

const ProviderInfo* find_provider(std::string_view name) {
  const auto all = all_providers();
  const auto found =
      std::ranges::find(all, name, [](const ProviderInfo* info) { return info->name; });
  return found == all.end() ? nullptr : *found;
}

Result<std::unique_ptr<Provider>> open_provider(std::string_view spec,
                                                const ProviderContext& context) {
  const size_t colon = spec.find(':');
  const ProviderInfo* info = find_provider(spec.substr(0, colon));
  const bool bare = colon == std::string_view::npos || colon + 1 == spec.size();
  if (info == nullptr || bare) {
    std::string known;
    for (const ProviderInfo* each : all_providers()) {
      known += fmt::format("{}{}:{}", known.empty() ? "" : ", ", each->name, each->argument);
    }
    return Error{Errc::invalid, fmt::format("'{}' names no model; write one of {}", spec, known)};
  }
  std::unique_ptr<Provider> provider = TRY(info->make(spec.substr(colon + 1), context));
  if (!info->remote) return provider;
  provider = with_retry(std::move(provider), context.clock, context.rng.split(spec),
                        context.events);
  return with_breaker(std::move(provider), context.clock, context.events);
}

// A search waits meanwhile, and has another way to go on: it is tried less often than a completion,
// and whoever asks for a long pause is not waited for.
Result<std::unique_ptr<Provider>> open_embedding_transport(std::string_view spec,
                                                           const ProviderContext& context) {
  constexpr RetryOptions kPatience{.attempts_max = 3, .wait_max = Milliseconds(30'000)};
  const size_t colon = spec.find(':');
  const ProviderInfo* info = find_provider(spec.substr(0, colon));
  const bool bare = colon == std::string_view::npos || colon + 1 == spec.size();
  if (info == nullptr || bare || info->make_embeddings == nullptr) {
    std::string known;
    for (const ProviderInfo* each : all_providers()) {
      if (each->make_embeddings == nullptr) continue;
      known += fmt::format("{}{}:{}", known.empty() ? "" : ", ", each->name, each->argument);
    }
    return Error{Errc::invalid,
                 fmt::format("'{}' names no model that makes embeddings; write {}", spec, known)};
  }
  std::unique_ptr<Provider> transport =
      TRY(info->make_embeddings(spec.substr(colon + 1), context));
  return with_retry(std::move(transport), context.clock, context.rng.split(spec), context.events,
                    kPatience);
}

}  // namespace ke::llm
