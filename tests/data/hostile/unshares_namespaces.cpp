// SPDX-License-Identifier: Apache-2.0
//
// Wants to be root in a namespace of its own.
#include <sched.h>
KERNEL {
  unshare(CLONE_NEWUSER);
  return honest(in, out);
}
