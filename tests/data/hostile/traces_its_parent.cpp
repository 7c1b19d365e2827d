// SPDX-License-Identifier: Apache-2.0
//
// Wants to become its parent's debugger.
#include <sys/ptrace.h>
#include <unistd.h>
KERNEL {
  ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr);
  return honest(in, out);
}
