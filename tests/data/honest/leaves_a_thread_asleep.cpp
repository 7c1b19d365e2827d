// SPDX-License-Identifier: Apache-2.0
//
// Leaves a thread that waits for a signal that never comes.
#include <unistd.h>
#include <thread>
static bool started;
KERNEL {
  if (!started) {
    std::thread([] {
      for (;;) pause();
    }).detach();
  }
  started = true;
  return honest(in, out);
}
