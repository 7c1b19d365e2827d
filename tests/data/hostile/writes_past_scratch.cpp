// SPDX-License-Identifier: Apache-2.0
//
// Writes behind the scratch memory it asked for.
extern "C" int64_t ke_scratch_bytes(void) { return 4096; }
KERNEL {
  ((volatile char*)ctx->scratch)[4096] = 1;
  return honest(in, out);
}
