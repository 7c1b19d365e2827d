// SPDX-License-Identifier: Apache-2.0
//
// Includes itself.
#include __FILE__
KERNEL { return honest(in, out); }
