// SPDX-License-Identifier: Apache-2.0
//
// A constant whose value takes for ever to compute.
constexpr int never() {
  int i = 0;
  for (;;) i = 1 - i;
  return i;
}
constexpr int value = never();
KERNEL { return value; }
