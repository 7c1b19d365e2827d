// SPDX-License-Identifier: Apache-2.0
//
// Shows a run's events on stderr: one live line with a bar on a terminal, plain lines elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "base/events.hpp"
#include "os/clock.hpp"

namespace ke::cli {

class Progress final : public EventSink {
 public:
  // terminal_width: columns of the terminal behind stderr; 0 when it is none.
  Progress(os::Clock& clock, int terminal_width);
  ~Progress() override;

  void emit(std::string_view name, const Json& fields) override;
  void finish();  // ends an open live line

 private:
  void show_step(const Json& fields);
  void show_model(std::string_view name, const Json& fields);
  void live_line(const std::string& text);
  void plain_line(const std::string& text);

  os::Clock& clock_;
  int width_;
  bool line_open_ = false;
  Nanoseconds started_{0};
  Nanoseconds last_plain_{0};
  int64_t steps_max_ = 0;
  double seconds_max_ = 0;
  double best_shown_ = 0;
};

}  // namespace ke::cli
