// SPDX-License-Identifier: Apache-2.0
//
// Starts a child process that shares its memory.
#include <unistd.h>
KERNEL {
  if (vfork() == 0) _exit(0);
  return honest(in, out);
}
