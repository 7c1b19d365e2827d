// SPDX-License-Identifier: Apache-2.0
//
// Jumps to where it came from, by longjmp and by goto.
#include <setjmp.h>
KERNEL {
  jmp_buf back;
  if (setjmp(back) == 0) longjmp(back, 1);
  const int64_t rows = in[0].shape[0], k = in[0].shape[1];
  int64_t r = 0;
again:
  honest_row((const float*)in[0].data + r * k, (const float*)in[1].data,
             (float*)out[0].data + r * k, (float*)out[1].data + r, k);
  if (++r < rows) goto again;
  return 0;
}
