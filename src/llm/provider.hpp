// SPDX-License-Identifier: Apache-2.0
//
// The contract of a language model: a prompt goes in, text streams out. A provider is one folder of
// llm/ whose provider.cpp defines `extern const ProviderInfo provider_<folder>`; CMake generates
// the registry. What wraps a provider (retry, breaker, budget, recording) is a Provider as well.
//
// A completion that fails is data with a typed reason, because the caller acts on the reason:
// waits, shrinks the prompt, asks another model, or goes on without one.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/digest.hpp"
#include "base/enum_names.hpp"
#include "base/events.hpp"
#include "base/result.hpp"
#include "base/rng.hpp"
#include "base/units.hpp"
#include "domain/limits.hpp"
#include "llm/environment.hpp"
#include "os/clock.hpp"
#include "os/http.hpp"

namespace ke::llm {

enum class Role : uint8_t { user, assistant };

struct Message {
  Role role = Role::user;
  std::string text;
  bool operator==(const Message&) const = default;
};

// The model is the provider's; a request can be sent to any.
struct CompletionRequest {
  // What stays the same over many calls (contract, constraints, hardware). It is sent first and
  // marked, so that the providers' prompt caches apply. May be empty.
  std::string stable;
  std::vector<Message> messages;  // what differs; at least one, and the last is the user's
  int64_t output_tokens_max = 16'384;
  std::optional<double> temperature;  // absent: the model's own default, which some insist on
  // What is asked, for whoever sees prompts go by: "llm/context_memory". Never sent to a model.
  std::string purpose = {};
};

// Names the prompt: the stable part and the messages, not the options.
Digest prompt_digest(const CompletionRequest& request);

// The prompt as one text, for readers without roles (a command, a person): the stable part, then
// the messages; a conversation of several gets a heading for each.
std::string plain_text(const CompletionRequest& request);

enum class FinishReason : uint8_t {
  stop,          // the model was done
  length,        // cut off at output_tokens_max or the end of its context
  refusal,       // the model or a content filter declined
  stopped_by_us  // the delta callback or the stop token ended it
};

struct Usage {
  int64_t input_tokens = 0;         // all of the prompt, cached or not
  int64_t cached_input_tokens = 0;  // of those: read from the provider's cache
  int64_t cache_write_tokens = 0;   // of those: written to it, where that has a price of its own
  int64_t output_tokens = 0;
  bool estimated = false;  // counted by us from the length, not reported by the provider

  Usage& operator+=(const Usage& other);
  bool operator==(const Usage&) const = default;
};

// About how many tokens a text has, from its length: four bytes each. For budgets and estimates.
int64_t estimate_tokens(std::string_view text);
Usage estimate_usage(const CompletionRequest& request, std::string_view answer);

struct Completion {
  std::string text;
  FinishReason finish = FinishReason::stop;
  Usage usage;
  std::string provider;  // Provider::id() of who answered
  Nanoseconds elapsed{0};
  std::optional<Milliseconds> pause;  // the endpoint asks to wait so long before the next call
};

enum class FailureKind : uint8_t {
  unreachable,       // no connection, no trust, a cut in the middle, a command that failed
  unauthorized,      // the key is missing, wrong, or may not (also: the account is out of money)
  rate_limited,      // too many calls or tokens; retry_after when told
  overloaded,        // the endpoint failed by itself (5xx); retry_after when told
  context_overflow,  // the prompt is too long; context_tokens_max when told
  refused,           // the endpoint will not take this request as it is (unknown model, bad option)
  malformed,         // what came is not what the protocol says
  timed_out,         // a limit on silence or on the whole passed
  budget,            // our own budget forbids the call
  diverged           // a replay was asked something that was not recorded
};

struct Failure {
  FailureKind kind = FailureKind::unreachable;
  std::string message;  // one sentence: what is wrong and what to do; never holds a key
  std::optional<Milliseconds> retry_after = {};
  std::optional<int64_t> context_tokens_max = {};
  Usage usage = {};  // what the failed attempts cost
};

struct [[nodiscard]] Outcome : tl::expected<Completion, Failure> {
  using tl::expected<Completion, Failure>::expected;
  Outcome(Failure failure)
      : tl::expected<Completion, Failure>(tl::make_unexpected(std::move(failure))) {}
};

// A piece of the answer as it comes. When `attempt` grows, an earlier attempt broke off and the
// text starts anew: forget what came before.
struct Delta {
  std::string_view text;
  int attempt = 0;
};
using OnDelta = std::function<bool(const Delta& delta)>;  // false ends the answer; may be empty

// Safe to call from many threads. complete() blocks, and calls on_delta from the calling thread.
class Provider {
 public:
  virtual ~Provider() = default;

  virtual std::string id() const = 0;  // "openai:NAME", as given on the command line

  virtual Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                           std::stop_token stop) = 0;

  // False while a dead endpoint waits for its next try (llm/breaker.hpp); a call then fails at
  // once, so whoever has other ways to make candidates should take them.
  virtual bool available() const { return true; }
};

// What providers are made from. All references outlive the provider.
struct ProviderContext {
  os::Clock& clock;
  os::HttpClient& http;
  const Environment& environment;
  const Limits& limits;
  // Emitted to from the threads that call complete(): hand in an EventQueue (base/events.hpp).
  EventSink& events;
  Rng rng;  // for jitter
};

struct ProviderInfo {
  std::string_view name;      // "openai"
  std::string_view argument;  // "NAME", for help texts
  std::string_view help;      // one line
  bool remote;                // fails in passing: open_provider adds retry and breaker
  // Errc::invalid with a sentence when the argument or the environment is at fault.
  Result<std::unique_ptr<Provider>> (*make)(std::string_view argument,
                                            const ProviderContext& context);
  // A transport for embeddings (llm/embedder.hpp); null: it has none.
  Result<std::unique_ptr<Provider>> (*make_embeddings)(std::string_view argument,
                                                       const ProviderContext& context) = nullptr;
};

std::span<const ProviderInfo* const> all_providers();      // sorted by name
const ProviderInfo* find_provider(std::string_view name);  // null when unknown

// "openai:NAME", "exec:COMMAND"…: a provider ready for use, with retry and breaker where it is
// remote.
Result<std::unique_ptr<Provider>> open_provider(std::string_view spec,
                                                const ProviderContext& context);

}  // namespace ke::llm

template <>
inline constexpr std::array<std::string_view, 2> ke::kEnumNames<ke::llm::Role>{"user", "assistant"};
template <>
inline constexpr std::array<std::string_view, 4> ke::kEnumNames<ke::llm::FinishReason>{
    "stop", "length", "refusal", "stopped_by_us"};
template <>
inline constexpr std::array<std::string_view, 10> ke::kEnumNames<ke::llm::FailureKind>{
    "unreachable", "unauthorized", "rate_limited", "overloaded", "context_overflow",
    "refused",     "malformed",    "timed_out",    "budget",     "diverged"};
