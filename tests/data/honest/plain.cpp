// SPDX-License-Identifier: Apache-2.0
//
// The straightforward kernel.
KERNEL { return honest(in, out); }
