// SPDX-License-Identifier: Apache-2.0
//
// Asks the linker for a library.
// ke:flags -lz
KERNEL { return honest(in, out); }
