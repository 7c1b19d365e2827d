// SPDX-License-Identifier: Apache-2.0
//
// Wants to run before everybody else, which the sandbox refuses.
#include <sched.h>
#include <unistd.h>
KERNEL {
  sched_param first = {};
  first.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &first) == 0 || nice(-5) == -5) return 1;
  return honest(in, out);
}
