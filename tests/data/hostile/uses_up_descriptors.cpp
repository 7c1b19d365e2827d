// SPDX-License-Identifier: Apache-2.0
//
// Leaves no descriptor free for the memory of the next call.
#include <unistd.h>
KERNEL {
  while (dup(0) >= 0) {
  }
  return honest(in, out);
}
