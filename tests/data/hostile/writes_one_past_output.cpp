// SPDX-License-Identifier: Apache-2.0
//
// Writes the element right behind an output: the canary.
KERNEL {
  honest(in, out);
  ((float*)out[1].data)[out[1].shape[0]] = 1;
  return 0;
}
