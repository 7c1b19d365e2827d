// SPDX-License-Identifier: Apache-2.0
//
// Takes the stack a megabyte at a time.
#include <alloca.h>
KERNEL {
  for (;;) {
    volatile char* block = (volatile char*)alloca(1 << 20);
    block[0] = 1;
  }
}
