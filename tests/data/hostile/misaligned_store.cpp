// SPDX-License-Identifier: Apache-2.0
//
// An aligned store to an address that is not aligned.
KERNEL {
  honest(in, out);
  float* second = (float*)out[0].data + 1;
  asm volatile("movaps %%xmm0, (%0)" : : "r"(second) : "memory");
  return 0;
}
