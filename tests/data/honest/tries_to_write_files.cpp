// SPDX-License-Identifier: Apache-2.0
//
// Tries to leave files behind, which the room refuses everywhere.
#include <fcntl.h>
static const char* const paths[] = {"/left", "/tmp/left", "/var/tmp/left", "/dev/shm/left",
                                    "/usr/left"};
KERNEL {
  for (const char* path : paths) {
    if (open(path, O_CREAT | O_WRONLY, 0600) >= 0) return 1;
  }
  return honest(in, out);
}
