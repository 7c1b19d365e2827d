// SPDX-License-Identifier: Apache-2.0
//
// Dereferences null.
KERNEL { return *(volatile int*)nullptr; }
