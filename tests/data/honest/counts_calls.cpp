// SPDX-License-Identifier: Apache-2.0
//
// Counts its calls, and does nothing with the number.
static volatile long calls;
KERNEL {
  calls = calls + 1;
  return calls > 0 ? honest(in, out) : 1;
}
