// SPDX-License-Identifier: Apache-2.0
//
// Answers with zeros, whatever the question.
KERNEL {
  for (int o = 0; o < n_out; ++o) {
    int64_t elements = 1;
    for (int d = 0; d < out[o].ndim; ++d) elements *= out[o].shape[d];
    __builtin_memset(out[o].data, 0, elements * 4);
  }
  return 0;
}
