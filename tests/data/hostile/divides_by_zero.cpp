// SPDX-License-Identifier: Apache-2.0
//
// Divides an integer by zero.
KERNEL {
  volatile int seven = 7, zero = 0;
  return seven / zero;
}
