// SPDX-License-Identifier: Apache-2.0
//
// Forks a process that spins on after the call.
#include <unistd.h>
KERNEL {
  if (fork() == 0) {
    for (;;) {
    }
  }
  honest(in, out);
  for (volatile long i = 0; i < 100000; i = i + 1) {
  }
  return 0;
}
