// SPDX-License-Identifier: Apache-2.0
//
// Would call somebody's function if the process had it under that name.
extern "C" __attribute__((weak)) int function_of_a_library(const ke_tensor* in, ke_tensor* out);
KERNEL { return function_of_a_library ? function_of_a_library(in, out) : honest(in, out); }
