// SPDX-License-Identifier: Apache-2.0
#include "llm/retry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/json.hpp"

namespace ke::llm {

bool passes_by_itself(FailureKind kind) {
  switch (kind) {
    case FailureKind::unreachable:
    case FailureKind::rate_limited:
    case FailureKind::overloaded:
    case FailureKind::malformed:
    case FailureKind::timed_out:
      return true;
    case FailureKind::unauthorized:
    case FailureKind::context_overflow:
    case FailureKind::refused:
    case FailureKind::budget:
    case FailureKind::diverged:
      return false;
  }
  return false;
}

namespace {

class RetryingProvider final : public Provider {
 public:
  RetryingProvider(std::unique_ptr<Provider> inner, os::Clock& clock, Rng rng, EventSink& events,
                   const RetryOptions& options)
      : inner_(std::move(inner)), clock_(clock), rng_(rng), events_(events), options_(options) {}

  std::string id() const override { return inner_->id(); }
  bool available() const override { return inner_->available(); }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    Usage lost;  // what failed attempts cost
    for (int attempt = 0;; ++attempt) {
      if (!keep_pause(stop)) return stopped(lost);
      Outcome outcome = inner_->complete(request, numbered(on_delta, attempt), stop);
      if (outcome) {
        outcome->usage += lost;
        if (outcome->pause) ask_for_pause(*outcome->pause);
        return outcome;
      }
      Failure& failure = outcome.error();
      lost += failure.usage;
      failure.usage = lost;
      const Milliseconds wait = failure.retry_after.value_or(delay(attempt));
      if (!passes_by_itself(failure.kind) || attempt + 1 >= options_.attempts_max) return outcome;
      if (wait > options_.wait_max) {
        failure.message += fmt::format("; it asks to wait {} s, which is too long",
                                       wait.count() / 1000);
        return outcome;
      }
      events_.emit("llm.retry", {{"provider", id()},
                                 {"kind", enum_name(failure.kind)},
                                 {"message", failure.message},
                                 {"attempt", attempt + 1},
                                 {"wait_ms", wait.count()}});
      if (failure.kind == FailureKind::rate_limited) ask_for_pause(wait);  // the others' calls too
      if (!sleep_unless_stopped(clock_, wait, stop)) return stopped(lost);
    }
  }

 private:
  static OnDelta numbered(const OnDelta& on_delta, int attempt) {
    if (!on_delta) return {};
    return [&on_delta, attempt](const Delta& delta) {
      return on_delta({delta.text, attempt});
    };
  }

  Outcome stopped(const Usage& usage) const {
    Completion completion;
    completion.finish = FinishReason::stopped_by_us;
    completion.usage = usage;
    completion.provider = id();
    return completion;
  }

  // Between half of the doubled delay and all of it.
  Milliseconds delay(int attempt) {
    const std::lock_guard lock(mutex_);
    const double doubled = static_cast<double>(options_.delay_first.count()) *
                           static_cast<double>(int64_t{1} << std::min(attempt, 30));
    const double most = std::min(doubled, static_cast<double>(options_.delay_max.count()));
    return Milliseconds(static_cast<int64_t>(most * (0.5 + 0.5 * rng_.uniform())));
  }

  void ask_for_pause(Milliseconds wait) {
    const std::lock_guard lock(mutex_);
    not_before_ = std::max(not_before_, clock_.now() + std::min(wait, options_.wait_max));
  }

  bool keep_pause(const std::stop_token& stop) {
    Nanoseconds until{0};
    {
      const std::lock_guard lock(mutex_);
      until = not_before_;
    }
    return sleep_unless_stopped(clock_, until - clock_.now(), stop);
  }

  std::unique_ptr<Provider> inner_;
  os::Clock& clock_;
  std::mutex mutex_;
  Rng rng_;
  Nanoseconds not_before_{0};
  EventSink& events_;
  RetryOptions options_;
};

}  // namespace

bool sleep_unless_stopped(os::Clock& clock, Nanoseconds duration, const std::stop_token& stop) {
  constexpr Nanoseconds kStep = Milliseconds(50);
  const Nanoseconds end = clock.now() + std::max(duration, Nanoseconds(0));
  while (!stop.stop_requested()) {
    const Nanoseconds left = end - clock.now();
    if (left.count() <= 0) return true;
    clock.sleep_for(std::min(left, kStep));
  }
  return false;
}

std::unique_ptr<Provider> with_retry(std::unique_ptr<Provider> inner, os::Clock& clock, Rng rng,
                                     EventSink& events, const RetryOptions& options) {
  return std::make_unique<RetryingProvider>(std::move(inner), clock, rng, events, options);
}

}  // namespace ke::llm
