// SPDX-License-Identifier: Apache-2.0
//
// Recurses without end.
static int deeper(volatile int* n) {
  volatile int here[1000];
  here[0] = *n + 1;
  return deeper(here) + here[0];
}
KERNEL {
  volatile int zero = 0;
  return deeper(&zero);
}
