// SPDX-License-Identifier: Apache-2.0
//
// Ends the process in a constructor.
#include <unistd.h>
__attribute__((constructor)) static void early() { _exit(0); }
KERNEL { return honest(in, out); }
