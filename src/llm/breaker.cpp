// SPDX-License-Identifier: Apache-2.0
#include "llm/breaker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/json.hpp"
#include "llm/retry.hpp"

namespace ke::llm {

namespace {

// Whether the failure says that the endpoint is dead, rather than that it does not like this call.
bool about_the_endpoint(FailureKind kind) {
  return kind == FailureKind::unauthorized || passes_by_itself(kind);
}

class BreakerProvider final : public Provider {
 public:
  BreakerProvider(std::unique_ptr<Provider> inner, os::Clock& clock, EventSink& events,
                  const BreakerOptions& options)
      : inner_(std::move(inner)), clock_(clock), events_(events), options_(options) {}

  std::string id() const override { return inner_->id(); }

  bool available() const override {
    const std::lock_guard lock(mutex_);
    return !closed() && inner_->available();
  }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    {
      const std::lock_guard lock(mutex_);
      if (closed()) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(reopens_ - clock_.now());
        return Failure{FailureKind::unreachable,
                       fmt::format("{} is not answering; the next try is in {} s", id(),
                                   std::max<int64_t>(left.count(), 0))};
      }
      looking_ = dead_;  // one call at a time looks whether it has come back
    }
    Outcome outcome = inner_->complete(request, on_delta, stop);
    const std::lock_guard lock(mutex_);
    looking_ = false;
    // A stop says nothing about the endpoint.
    const bool stopped = outcome && outcome->finish == FinishReason::stopped_by_us &&
                         outcome->text.empty();
    if (stopped) return outcome;
    if (!outcome && about_the_endpoint(outcome.error().kind)) {
      note_failure(outcome.error());
    } else {
      note_life();
    }
    return outcome;
  }

 private:
  bool closed() const { return dead_ && (looking_ || clock_.now() < reopens_); }

  void note_failure(const Failure& failure) {
    failures_ = failure.kind == FailureKind::unauthorized ? options_.failures_max : failures_ + 1;
    if (failures_ < options_.failures_max) return;
    const bool news = !dead_;
    closed_for_ = news ? options_.closed_first : std::min(closed_for_ * 2, options_.closed_max);
    dead_ = true;
    reopens_ = clock_.now() + closed_for_;
    if (!news) return;
    events_.emit("llm.dead", {{"provider", id()},
                              {"kind", enum_name(failure.kind)},
                              {"message", failure.message},
                              {"retry_ms", closed_for_.count()}});
  }

  void note_life() {
    failures_ = 0;
    if (!dead_) return;
    dead_ = false;
    events_.emit("llm.alive", {{"provider", id()}});
  }

  std::unique_ptr<Provider> inner_;
  os::Clock& clock_;
  EventSink& events_;
  BreakerOptions options_;
  mutable std::mutex mutex_;
  int failures_ = 0;
  bool dead_ = false;
  bool looking_ = false;
  Milliseconds closed_for_{0};
  Nanoseconds reopens_{0};
};

}  // namespace

std::unique_ptr<Provider> with_breaker(std::unique_ptr<Provider> inner, os::Clock& clock,
                                       EventSink& events, const BreakerOptions& options) {
  return std::make_unique<BreakerProvider>(std::move(inner), clock, events, options);
}

}  // namespace ke::llm
