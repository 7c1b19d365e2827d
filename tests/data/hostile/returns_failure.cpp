// SPDX-License-Identifier: Apache-2.0
//
// Computes the answer but says that it failed.
KERNEL {
  honest(in, out);
  return 7;
}
