// SPDX-License-Identifier: Apache-2.0
//
// Writes two pages before the scratch memory it asked for.
extern "C" int64_t ke_scratch_bytes(void) { return 4096; }
KERNEL {
  ((volatile char*)ctx->scratch)[-8192] = 1;
  return honest(in, out);
}
