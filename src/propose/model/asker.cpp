// SPDX-License-Identifier: Apache-2.0
#include "propose/model/asker.hpp"

#include <algorithm>


namespace ke {
namespace {

// An answer that comes in one piece ends right behind its block: then the block alone is no news.
constexpr Milliseconds kRipening{50};

// Passes a stream on to the reader of answers and keeps what was written.
class Listener {
 public:
  explicit Listener(const llm::AnswerContract& contract) : stream_(contract) {}

  // True when a block has just become complete.
  bool hear(const llm::Delta& delta) {
    if (delta.attempt != attempt_) text_.clear();
    attempt_ = delta.attempt;
    text_ += delta.text;
    return stream_.feed(delta).has_value();
  }
  const std::string& text() const { return text_; }

 private:
  llm::AnswerStream stream_;
  std::string text_;
  int attempt_ = 0;
};

llm::Completion written_so_far(const std::string& text, const std::string& provider,
                               Nanoseconds elapsed) {
  llm::Completion completion;
  completion.text = text;
  completion.finish = llm::FinishReason::stopped_by_us;
  completion.provider = provider;
  completion.elapsed = elapsed;
  return completion;
}

}  // namespace

Asker::Asker(std::vector<AskedModel> models, int calls, os::Clock& clock, EventQueue& events)
    : models_(std::move(models)), clock_(clock), events_(events) {
  for (int i = 0; i < calls; ++i) {
    workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  }
}

Asker::~Asker() { end(); }

void Asker::end() {
  for (std::jthread& worker : workers_) worker.request_stop();
  workers_.clear();
  jobs_.clear();
}

std::vector<ModelInfo> Asker::list() const {
  std::vector<ModelInfo> list;
  for (const AskedModel& model : models_) {
    list.push_back({model.provider->id(), model.price.has_value()});
  }
  return list;
}

bool Asker::available(int model) const {
  return models_[static_cast<size_t>(model)].provider->available();
}

void Asker::ask(PromptId prompt, int model, const llm::CompletionRequest& request,
                const llm::AnswerContract& contract) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back({prompt, model, request, contract});
  changed_.notify_all();
}

std::optional<ModelEvent> Asker::poll() {
  const std::lock_guard lock(mutex_);
  const Nanoseconds now = clock_.now();
  const auto found =
      std::ranges::find_if(held_, [now](const Held& held) { return held.ripe <= now; });
  if (found == held_.end()) return std::nullopt;
  ModelEvent event = std::move(found->event);
  held_.erase(found);
  return event;
}

Result<void> Asker::wait(Milliseconds most) {
  const Nanoseconds deadline = clock_.now() + most;
  std::unique_lock lock(mutex_);
  for (;;) {
    const Nanoseconds now = clock_.now();
    Nanoseconds next = deadline;
    for (const Held& held : held_) next = std::min(next, held.ripe);
    if (next <= now) return {};
    changed_.wait_for(lock, next - now);
  }
}

void Asker::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    if (stop.stop_requested()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    run(job, stop);
    lock.lock();
  }
}

void Asker::run(const Job& job, const std::stop_token& stop) {
  const AskedModel& model = models_[static_cast<size_t>(job.model)];
  const Nanoseconds start = clock_.now();
  Listener listener(job.contract);
  const auto on_delta = [&](const llm::Delta& delta) {
    if (listener.hear(delta)) {
      hold({job.prompt, true,
            written_so_far(listener.text(), model.provider->id(), clock_.now() - start)});
    }
    return !stop.stop_requested();
  };
  llm::Outcome outcome = model.provider->complete(job.request, on_delta, stop);
  // Cut short by a stop of ours: no answer, so that a resumed run asks again.
  if (outcome && outcome->finish == llm::FinishReason::stopped_by_us) return;
  if (!outcome && stop.stop_requested()) return;
  const llm::Usage& usage = outcome ? outcome->usage : outcome.error().usage;
  const double usd = model.price ? model.price->cost_usd(usage) : 0.0;
  hold({job.prompt, false, std::move(outcome), usd});
}

// What is told at last stands for what was told early and has not been heard yet.
void Asker::hold(ModelEvent event) {
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](const Held& held) { return held.event.prompt == event.prompt; });
  Nanoseconds ripe = clock_.now();
  if (event.early) ripe += kRipening;
  held_.push_back({std::move(event), ripe});
  changed_.notify_all();
}

}  // namespace ke
