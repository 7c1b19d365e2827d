// SPDX-License-Identifier: Apache-2.0
//
// Asks the linker for a file by its path.
// ke:flags -l:../../../../etc/passwd
KERNEL { return honest(in, out); }
