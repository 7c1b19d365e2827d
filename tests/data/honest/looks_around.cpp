// SPDX-License-Identifier: Apache-2.0
//
// Looks for what is none of its business, which the room does not hold.
#include <fcntl.h>
static const char* const paths[] = {"/etc/passwd", "/etc/shadow", "/root", "/home", "/var", "/sys"};
KERNEL {
  for (const char* path : paths) {
    if (open(path, O_RDONLY) >= 0) return 1;
  }
  return honest(in, out);
}
