// SPDX-License-Identifier: Apache-2.0
//
// Takes denormals for zero from now on, as many libraries do.
#include <xmmintrin.h>
KERNEL {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  return honest(in, out);
}
