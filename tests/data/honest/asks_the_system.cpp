// SPDX-License-Identifier: Apache-2.0
//
// Environment, clock, its own status: nothing of it matters.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
KERNEL {
  timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  volatile int threads = 0;
  if (const char* text = getenv("OMP_NUM_THREADS")) threads = atoi(text);
  if (FILE* status = fopen("/proc/self/status", "r")) {
    char line[256];
    while (fgets(line, sizeof line, status)) threads = threads + 1;
    fclose(status);
  }
  sched_yield();
  honest(in, out);
  clock_gettime(CLOCK_MONOTONIC, &after);
  return after.tv_sec < before.tv_sec;
}
