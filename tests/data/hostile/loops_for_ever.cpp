// SPDX-License-Identifier: Apache-2.0
//
// Never returns.
KERNEL {
  for (volatile int i = 0;;) i = i + 1;
}
