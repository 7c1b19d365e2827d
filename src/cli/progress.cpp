// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/json.hpp"

namespace ke::cli {
namespace {

constexpr int kBarColumns = 24;
// Without a terminal, a step is reported when it is a new best or this much time has passed.
constexpr Nanoseconds kPlainInterval = std::chrono::seconds(10);

double number(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_number() ? found->get<double>() : 0.0;
}

std::string text(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string bar(double share) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * kBarColumns);
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kBarColumns - filled), '.') + "]";
}

std::string seconds_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f}s", seconds);
  return fmt::format("{:.0f}m{:02.0f}s", seconds / 60 - 0.5,
                     seconds - 60 * static_cast<int>(seconds / 60));
}

}  // namespace

Progress::Progress(os::Clock& clock, int terminal_width) : clock_(clock), width_(terminal_width) {
  started_ = clock_.now();
}

Progress::~Progress() { finish(); }

void Progress::finish() {
  if (line_open_) std::fputc('\n', stderr);
  line_open_ = false;
}

void Progress::emit(std::string_view name, const Json& fields) {
  if (name == "step.finished") return show_step(fields);
  if (name == "run.started") {
    started_ = clock_.now();
    steps_max_ = static_cast<int64_t>(number(fields, "steps_max"));
    seconds_max_ = number(fields, "seconds_max");
    best_shown_ = 0;
    return;
  }
  if (name == "stage") return plain_line(text(fields, "what"));
  if (name.starts_with("model") || name.starts_with("llm.")) return show_model(name, fields);
  if (name == "run.confirming") {
    return plain_line(fmt::format("confirming the best {} with fresh seeds, processes and samples",
                                  static_cast<int64_t>(number(fields, "count"))));
  }
}

// What a person should know of models; the rest is in the graph.
void Progress::show_model(std::string_view name, const Json& fields) {
  if (name == "llm.dead") {
    return plain_line(fmt::format("{} does not answer ({}); going on without it for a while",
                                  text(fields, "provider"), text(fields, "message")));
  }
  if (name == "llm.alive") {
    return plain_line(fmt::format("{} answers again", text(fields, "provider")));
  }
  if (name == "model.ended") {
    return plain_line(fmt::format("{} is not asked again: {}", text(fields, "model"),
                                  text(fields, "message")));
  }
  if (name == "model.stand_in") {
    const bool memory = text(fields, "agent") == "context_memory";
    return plain_line(fmt::format("the model's {} cannot be used ({}); the embedded one stands in",
                                  memory ? "diagnosis" : "choice of documents",
                                  text(fields, "message")));
  }
  if (name == "models.away") return plain_line(text(fields, "message"));
}

void Progress::show_step(const Json& fields) {
  const auto step = static_cast<int64_t>(number(fields, "step"));
  const double best = number(fields, "best");
  const double seconds = std::chrono::duration<double>(clock_.now() - started_).count();
  const double share =
      std::max(steps_max_ > 0 ? static_cast<double>(step) / static_cast<double>(steps_max_) : 0.0,
               seconds_max_ > 0 ? seconds / seconds_max_ : 0.0);
  std::string line = fmt::format("{} step {}", bar(share), step);
  if (steps_max_ > 0) line += fmt::format("/{}", steps_max_);
  if (best > 0) line += fmt::format("  best {:.2f}x", best);
  line += fmt::format("  {:.1f}/min", seconds > 0 ? 60 * static_cast<double>(step) / seconds : 0.0);
  if (share > 0) line += "  " + seconds_text(seconds * (1 - share) / share) + " left";
  line += fmt::format("  {}: {}", text(fields, "proposer"), text(fields, "verdict"));
  if (width_ > 0) return live_line(line);
  const bool better = best > best_shown_ * 1.005;
  if (!better && clock_.now() - last_plain_ < kPlainInterval) return;
  best_shown_ = std::max(best_shown_, best);
  last_plain_ = clock_.now();
  plain_line(line);
}

void Progress::live_line(const std::string& line) {
  const auto columns = static_cast<size_t>(width_ > 1 ? width_ - 1 : 1);
  std::fprintf(stderr, "\r%s\033[K", line.substr(0, columns).c_str());
  std::fflush(stderr);
  line_open_ = true;
}

void Progress::plain_line(const std::string& line) {
  finish();
  std::fprintf(stderr, "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace ke::cli
