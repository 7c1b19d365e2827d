// SPDX-License-Identifier: Apache-2.0
//
// Waits instead of working.
#include <unistd.h>
KERNEL {
  for (;;) pause();
}
