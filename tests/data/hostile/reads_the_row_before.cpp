// SPDX-License-Identifier: Apache-2.0
//
// Begins one row too early, as a stencil without a border would.
KERNEL {
  honest(in, out);
  const int64_t k = in[0].shape[1];
  volatile const float* x = (const float*)in[0].data;
  float sum = 0;
  for (int64_t i = 0; i < k; ++i) sum += x[i - k];
  return sum == 1234567.0f;
}
