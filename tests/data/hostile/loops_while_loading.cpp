// SPDX-License-Identifier: Apache-2.0
//
// Never gets out of a constructor.
__attribute__((constructor)) static void early() {
  for (volatile int i = 0;;) i = i + 1;
}
KERNEL { return honest(in, out); }
