// SPDX-License-Identifier: Apache-2.0
//
// A library that takes a tebibyte as soon as it is loaded.
static char huge[int64_t{1} << 40];
KERNEL {
  ((volatile char*)huge)[in[0].shape[0]] = 1;
  return honest(in, out);
}
