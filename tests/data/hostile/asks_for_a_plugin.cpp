// SPDX-License-Identifier: Apache-2.0
//
// Wants the compiler to load a library.
// ke:flags -fplugin=./plugin.so
KERNEL { return honest(in, out); }
