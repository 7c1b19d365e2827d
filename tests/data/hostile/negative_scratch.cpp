// SPDX-License-Identifier: Apache-2.0
//
// Asks for less than no scratch memory.
extern "C" int64_t ke_scratch_bytes_for(const ke_tensor*, int32_t) { return -64; }
KERNEL { return honest(in, out); }
