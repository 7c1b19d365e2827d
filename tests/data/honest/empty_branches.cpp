// SPDX-License-Identifier: Apache-2.0
//
// Looks at addresses, sizes and values, and draws no conclusion.
KERNEL {
  volatile int seen = 0;
  if ((uintptr_t)in[0].data < (uintptr_t)out[0].data) seen = 1;
  if (in[0].shape[0] == 61 && in[0].shape[1] == 1003) seen = 2;
  if (((const float*)in[0].data)[0] > ((const float*)in[0].data)[1]) seen = 3;
  return seen < 4 ? honest(in, out) : 1;
}
