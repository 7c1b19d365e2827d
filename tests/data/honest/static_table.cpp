// SPDX-License-Identifier: Apache-2.0
//
// Fills a static table once; it holds nothing of the inputs.
static float table[256];
static bool ready;
KERNEL {
  if (!ready) {
    for (int i = 0; i < 256; ++i) table[i] = 1.0f;
    ready = true;
  }
  honest(in, out);
  for (int64_t i = 0; i < out[1].shape[0]; ++i) ((float*)out[1].data)[i] *= table[i % 256];
  return 0;
}
