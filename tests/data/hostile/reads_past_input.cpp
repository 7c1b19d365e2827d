// SPDX-License-Identifier: Apache-2.0
//
// Reads one element past the end of an input, far enough to leave the file's tail.
KERNEL {
  honest(in, out);
  volatile const float* x = (const float*)in[0].data;
  float beyond = x[in[0].shape[0] * in[0].shape[1] + 16];
  return beyond == 1234567.0f;
}
