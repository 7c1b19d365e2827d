// SPDX-License-Identifier: Apache-2.0
//
// Throws in a constructor.
__attribute__((constructor)) static void early() { throw 1; }
KERNEL { return honest(in, out); }
