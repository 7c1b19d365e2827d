// SPDX-License-Identifier: Apache-2.0
#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace ke {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "kernelevolve: broken assumption %s at %s:%d; please report this\n",
               condition, file, line);
  std::abort();
}

}  // namespace ke
