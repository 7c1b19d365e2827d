// SPDX-License-Identifier: Apache-2.0
//
// Starts threads until it cannot.
#include <unistd.h>
#include <thread>
#include <vector>
KERNEL {
  std::vector<std::thread> threads;
  for (;;) {
    threads.emplace_back([] {
      for (;;) pause();
    });
  }
}
