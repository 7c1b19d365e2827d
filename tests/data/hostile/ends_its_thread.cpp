// SPDX-License-Identifier: Apache-2.0
//
// Ends the thread that should answer, and leaves the pool's.
#include <sys/syscall.h>
#include <unistd.h>
KERNEL {
  honest(in, out);
  return (int)syscall(SYS_exit, 0);
}
