// SPDX-License-Identifier: Apache-2.0
//
// The runner host: a small single-threaded process, started once an evaluator, from which every
// runner is cloned into its room without exec (a warm start). It holds no secrets, no tensors and
// no results. The program reaches it by a hidden subcommand; tests by an argument of their own.
#pragma once

#include <cstdint>

namespace ke {

// Serves the judge on `socket_fd` until that closes; returns the process's exit code.
int runner_host_main(int socket_fd);

}  // namespace ke
