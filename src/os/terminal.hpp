// SPDX-License-Identifier: Apache-2.0
//
// The terminal and the wish to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

bool is_terminal(int fd);
// Columns of the terminal behind fd; absent when it is none.
std::optional<int> terminal_width(int fd);

// SIGINT and SIGTERM as a flag. The first one sets it; the second ends the process at once, as if
// nobody had asked. Install it in main, before any thread starts (the signals are blocked and read
// from a signalfd, so no code ever runs in a handler).
class StopSignal {
 public:
  // Blocks both signals in the calling thread.
  static Result<std::unique_ptr<StopSignal>> install();
  // For tests: set by request() alone.
  static std::unique_ptr<StopSignal> fake();

  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  ~StopSignal();  // unblocks again

  // Cheap; safe from any thread. True for ever after the first signal or request().
  bool requested() const;
  void request();
  // Readable from the first signal or request() on; for poll and RunOptions::stop_fd.
  int fd() const { return event_.get(); }

 private:
  StopSignal() = default;
  struct Watcher;

  std::atomic<bool> requested_{false};
  FileDescriptor event_;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace ke::os
