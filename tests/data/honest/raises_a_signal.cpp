// SPDX-License-Identifier: Apache-2.0
//
// Sends itself a signal and handles it.
#include <signal.h>
static volatile sig_atomic_t heard;
static void hear(int) { heard = 1; }
KERNEL {
  struct sigaction action = {}, before = {};
  action.sa_handler = hear;
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  return honest(in, out);
}
