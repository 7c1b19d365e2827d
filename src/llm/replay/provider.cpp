// SPDX-License-Identifier: Apache-2.0
//
// Answers from a recording (exchange.hpp). A prompt gets the answers that were recorded for it, in
// order; calls in flight together may come in any order. A prompt that was not recorded is a
// failure that says where it differs from the next one that was.
#include "llm/provider.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/json.hpp"
#include "llm/exchange.hpp"
#include "os/file_system.hpp"

namespace ke::llm {

namespace {

struct Recorded {
  Exchange exchange;
  bool used = false;
};

class ReplayProvider final : public Provider {
 public:
  ReplayProvider(std::string file, std::vector<Recorded> recorded)
      : file_(std::move(file)), recorded_(std::move(recorded)) {}

  std::string id() const override { return "replay:" + file_; }

  Outcome complete(const CompletionRequest& request, const OnDelta& on_delta,
                   std::stop_token stop) override {
    Outcome outcome = take(request);
    if (!outcome) return outcome;
    std::string_view rest = outcome->text;
    size_t given = 0;
    while (!rest.empty()) {  // line by line, so that whoever reads along does so in a replay too
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      const bool stopped = stop.stop_requested() ||
                           (on_delta && !on_delta(Delta{rest.substr(0, end)}));
      given += end;
      rest.remove_prefix(end);
      if (!stopped) continue;
      outcome->text.resize(given);
      outcome->finish = FinishReason::stopped_by_us;
      break;
    }
    return outcome;
  }

 private:
  Outcome take(const CompletionRequest& request) {
    const Digest digest = prompt_digest(request);
    const std::lock_guard lock(mutex_);
    bool known = false;
    for (Recorded& recorded : recorded_) {
      if (recorded.exchange.prompt != digest) continue;
      known = true;
      if (!std::exchange(recorded.used, true)) return recorded.exchange.outcome;
    }
    return Failure{FailureKind::diverged, explain(request, digest, known)};
  }

  std::string explain(const CompletionRequest& request, const Digest& digest, bool known) const {
    const std::string which = fmt::format("{}: the prompt {}", file_, digest.short_hex());
    if (known) return which + " was asked more often than it was recorded";
    const auto next = std::ranges::find(recorded_, false, &Recorded::used);
    if (next == recorded_.end()) {
      return fmt::format("{} was not recorded, and all {} exchanges are used", which,
                         recorded_.size());
    }
    return fmt::format("{} was not recorded; the next recorded one is number {}, {}: {}", which,
                       next - recorded_.begin() + 1, next->exchange.prompt.short_hex(),
                       difference(request, next->exchange.stable, next->exchange.messages));
  }

  std::string file_;
  std::mutex mutex_;
  std::vector<Recorded> recorded_;
};

Result<std::unique_ptr<Provider>> make(std::string_view argument, const ProviderContext&) {
  const std::filesystem::path path(argument);
  const std::string text = TRY(os::read_file(path, 4_GiB));
  std::vector<Recorded> recorded;
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;  // the kill that ended the recording cut this line
    const std::string place = fmt::format("{} line {}", path.string(), number);
    const Json json = TRY(parse_json(rest.substr(0, end)).context(place));
    recorded.push_back({TRY(decode_exchange(json).context(place))});
    rest.remove_prefix(end + 1);
  }
  if (recorded.empty()) {
    return Error{Errc::invalid, path.string() + " holds no recorded exchange"};
  }
  return std::unique_ptr<Provider>(
      std::make_unique<ReplayProvider>(path.string(), std::move(recorded)));
}

}  // namespace

extern const ProviderInfo provider_replay;
const ProviderInfo provider_replay{"replay", "FILE", "the answers of a recording", false, make};

}  // namespace ke::llm
