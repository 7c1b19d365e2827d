// SPDX-License-Identifier: Apache-2.0
//
// Calls abort.
#include <stdlib.h>
KERNEL {
  abort();
}
