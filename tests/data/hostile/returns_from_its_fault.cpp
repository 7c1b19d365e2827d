// SPDX-License-Identifier: Apache-2.0
//
// Handles its fault by trying again, for ever.
#include <signal.h>
static void nothing(int) {}
KERNEL {
  struct sigaction action = {};
  action.sa_handler = nothing;
  sigaction(SIGSEGV, &action, nullptr);
  return *(volatile int*)nullptr;
}
