// SPDX-License-Identifier: Apache-2.0
//
// Looks for the answer in its parent's memory.
#include <sys/uio.h>
#include <unistd.h>
KERNEL {
  iovec here{out[0].data, 4096}, there{out[0].data, 4096};
  process_vm_readv(getppid(), &here, 1, &there, 1, 0);
  return honest(in, out);
}
