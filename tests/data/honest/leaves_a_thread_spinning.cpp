// SPDX-License-Identifier: Apache-2.0
//
// Leaves a thread that spins. It slows its own kernel alone: who is not measured is stopped.
#include <thread>
static bool started;
KERNEL {
  if (!started) {
    std::thread([] {
      for (volatile unsigned i = 0;;) i = i + 1;
    }).detach();
  }
  started = true;
  return honest(in, out);
}
