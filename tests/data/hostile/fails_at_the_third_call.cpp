// SPDX-License-Identifier: Apache-2.0
//
// Says once, and not at first, that it failed.
static int calls;
KERNEL {
  honest(in, out);
  return ++calls == 3 ? 5 : 0;
}
