// SPDX-License-Identifier: Apache-2.0
//
// Stops itself, again and again.
#include <signal.h>
KERNEL {
  for (;;) raise(SIGSTOP);
}
