// SPDX-License-Identifier: Apache-2.0
//
// Calls a function that nobody has.
extern "C" int function_that_nobody_has(const ke_tensor* in, ke_tensor* out);
KERNEL { return function_that_nobody_has(in, out); }
