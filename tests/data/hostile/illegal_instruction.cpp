// SPDX-License-Identifier: Apache-2.0
//
// Executes what is no instruction.
KERNEL { __builtin_trap(); }
