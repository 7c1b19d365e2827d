// SPDX-License-Identifier: Apache-2.0
//
// How a kernel for the stand-in of the CUDA driver (fake_cuda.cpp) is written: the sizes of its
// parameters in bytes, then a function that does the work of the whole grid.
#pragma once

#include <stdint.h>

#define KE_FAKE(name, ...)                                                                     \
  extern "C" const int ke_fake_sizes_##name[] = {__VA_ARGS__, 0};                              \
  extern "C" void ke_fake_##name(const unsigned* grid, const unsigned* block, unsigned shared, \
                                 void** arguments)

namespace {
template <class T>
T argument(void** arguments, int at) {
  return *static_cast<T*>(arguments[at]);
}
inline int64_t threads(const unsigned* grid, const unsigned* block) {
  return int64_t{grid[0]} * block[0];
}
}  // namespace
