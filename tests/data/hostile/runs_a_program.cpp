// SPDX-License-Identifier: Apache-2.0
//
// Starts another program.
#include <unistd.h>
KERNEL {
  char* argv[] = {(char*)"/bin/true", nullptr};
  execv("/bin/true", argv);
  return honest(in, out);
}
