// SPDX-License-Identifier: Apache-2.0
//
// Writing to whoever has closed its end must not end this process: while an object of this class
// lives, write(2) on its thread fails with EPIPE instead. Threads started meanwhile inherit that,
// child processes do not.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace ke::os {

class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    const sigset_t set = pipe_signal();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~PipeSignalBlocked() {
    if (sigismember(&before_, SIGPIPE) != 0) return;
    const sigset_t set = pipe_signal();
    const timespec now{};
    while (sigtimedwait(&set, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

 private:
  static sigset_t pipe_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
  }

  sigset_t before_{};
};

}  // namespace ke::os
