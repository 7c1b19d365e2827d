// SPDX-License-Identifier: Apache-2.0
//
// Calls for help from another process.
#include <sys/socket.h>
KERNEL {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  return fd >= 0 ? 1 : honest(in, out);
}
