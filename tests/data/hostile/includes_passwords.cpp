// SPDX-License-Identifier: Apache-2.0
//
// Wants the accounts of the machine in its error messages.
static const char accounts[] =
#include "/etc/passwd"
    ;
KERNEL { return accounts[0] + honest(in, out); }
