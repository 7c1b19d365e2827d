// SPDX-License-Identifier: Apache-2.0
//
// The runner: the process in the locked room that loads one candidate and runs it on command.
#pragma once

#include <cstdint>

namespace ke::runner {

struct ChildOptions {
  int socket = -1;  // to the judge
  int32_t threads = 1;
  int64_t scratch_bytes_max = 0;
};

// Obeys commands until the socket closes; returns the process's exit code. Called once, in a
// process that does nothing else.
int child_main(const ChildOptions& options);

}  // namespace ke::runner
