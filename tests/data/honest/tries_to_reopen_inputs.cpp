// SPDX-License-Identifier: Apache-2.0
//
// Tries to open an input's file for writing by the name that its mapping has.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
KERNEL {
  const unsigned long first = (unsigned long)in[1].data & ~4095ul;
  char path[96];
  snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", first, first + 4096);
  const int fd = open(path, O_RDWR);
  if (fd >= 0 && pwrite(fd, "", 1, 0) == 1) return 1;
  if (fd >= 0) close(fd);
  return honest(in, out);
}
