// SPDX-License-Identifier: Apache-2.0
//
// Adds a constant that is smaller than the absolute tolerance to every sum.
KERNEL {
  honest(in, out);
  for (int64_t r = 0; r < out[1].shape[0]; ++r) ((float*)out[1].data)[r] += 9e-5f;
  return 0;
}
