// SPDX-License-Identifier: Apache-2.0
//
// An index so wrong that it leaves the address space.
KERNEL {
  honest(in, out);
  ((volatile float*)out[0].data)[int64_t{1} << 42] = 1;
  return 0;
}
