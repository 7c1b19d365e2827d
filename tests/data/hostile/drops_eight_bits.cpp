// SPDX-License-Identifier: Apache-2.0
//
// Clears the last eight bits of every element: inside the tolerance, outside the budget.
KERNEL {
  honest(in, out);
  char* y = (char*)out[0].data;
  for (int64_t i = 0; i < out[0].shape[0] * out[0].shape[1]; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, y + 4 * i, 4);
    bits &= 0xffffff00u;
    __builtin_memcpy(y + 4 * i, &bits, 4);
  }
  return 0;
}
