// SPDX-License-Identifier: Apache-2.0
//
// Registers work for the end of the process, which never comes.
#include <stdlib.h>
static float* table;
static bool registered;
KERNEL {
  if (!registered) {
    table = (float*)malloc(1024);
    atexit([] { free(table); });
  }
  registered = true;
  return honest(in, out);
}
