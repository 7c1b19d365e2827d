// SPDX-License-Identifier: Apache-2.0
//
// Wants to be linked with somebody else's kernels.
// ke:flags -lopenblas
KERNEL { return honest(in, out); }
