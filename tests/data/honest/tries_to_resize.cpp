// SPDX-License-Identifier: Apache-2.0
//
// Tries to shrink every descriptor, which the seals refuse, then computes the right answer.
#include <fcntl.h>
#include <unistd.h>
KERNEL {
  for (int fd = 3; fd < 64; ++fd) {
    if (ftruncate(fd, 0) == 0) return honest(in, out) + 1;
  }
  return honest(in, out);
}
