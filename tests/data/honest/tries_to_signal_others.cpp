// SPDX-License-Identifier: Apache-2.0
//
// Sends a harmless signal to everybody, which the sandbox refuses.
#include <signal.h>
#include <unistd.h>
KERNEL {
  if (kill(-1, SIGCONT) == 0 || kill(getppid(), SIGCONT) == 0) return 1;
  return honest(in, out);
}
