// SPDX-License-Identifier: Apache-2.0
//
// Asks for a queue through which system calls pass unseen.
#include <sys/syscall.h>
#include <unistd.h>
KERNEL {
  static char parameters[256];
  syscall(SYS_io_uring_setup, 8, parameters);
  return honest(in, out);
}
