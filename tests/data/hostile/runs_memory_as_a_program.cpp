// SPDX-License-Identifier: Apache-2.0
//
// Starts a program that lies in a memory file.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
KERNEL {
  const int fd = (int)syscall(SYS_memfd_create, "program", 0);
  char* argv[] = {(char*)"program", nullptr};
  if (write(fd, "#!/bin/true\n", 12) < 0) argv[0] = (char*)"nothing";
  syscall(SYS_execveat, fd, "", argv, nullptr, AT_EMPTY_PATH);
  return honest(in, out);
}
