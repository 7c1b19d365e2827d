// SPDX-License-Identifier: Apache-2.0
//
// Writes a page behind an output: the guard zone.
KERNEL {
  honest(in, out);
  ((float*)out[0].data)[out[0].shape[0] * out[0].shape[1] + 1024] = 1;
  return 0;
}
