// SPDX-License-Identifier: Apache-2.0
//
// Allocates and touches memory without end.
#include <stdlib.h>
#include <string.h>
KERNEL {
  for (;;) {
    char* block = (char*)malloc(64 << 20);
    if (!block) abort();
    memset(block, 1, 64 << 20);
  }
}
