// SPDX-License-Identifier: Apache-2.0
//
// A constructor makes a table of ones.
static float table[256];
__attribute__((constructor)) static void early() {
  for (float& one : table) one = 1;
}
KERNEL {
  honest(in, out);
  for (int64_t i = 0; i < out[1].shape[0]; ++i) ((float*)out[1].data)[i] *= table[i % 256];
  return 0;
}
