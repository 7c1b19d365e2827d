// SPDX-License-Identifier: Apache-2.0
//
// Writes a file without end.
#include <fcntl.h>
#include <unistd.h>
KERNEL {
  static char block[1 << 16];
  for (;;) {
    const int fd = open("/tmp/full", O_CREAT | O_WRONLY | O_APPEND, 0600);
    if (write(fd, block, sizeof block) < 0) usleep(1000);
    if (fd >= 0) close(fd);
  }
}
