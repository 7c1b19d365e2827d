// SPDX-License-Identifier: Apache-2.0
//
// Every element is off by one part in a hundred thousand: inside the tolerance, outside the budget.
KERNEL {
  honest(in, out);
  float* y = (float*)out[0].data;
  for (int64_t i = 0; i < out[0].shape[0] * out[0].shape[1]; ++i) y[i] *= 1.00001f;
  return 0;
}
