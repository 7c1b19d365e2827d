// SPDX-License-Identifier: Apache-2.0
//
// Returns its input as the output; only the sums are computed.
KERNEL {
  honest(in, out);
  __builtin_memcpy(out[0].data, in[0].data, in[0].shape[0] * in[0].shape[1] * 4);
  return 0;
}
