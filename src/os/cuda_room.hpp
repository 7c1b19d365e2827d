// SPDX-License-Identifier: Apache-2.0
//
// What a locked room must show for a CUDA driver to work in it.
#pragma once

#include <string>

#include "os/sandbox.hpp"

namespace ke::os::cuda {

// The driver talks to its devices through nodes, finds them through the system's own folders, and
// names its threads in /proc (else cuInit fails with CUDA_ERROR_OPERATING_SYSTEM). `library` is the
// driver, as for dlopen; a path is shown too.
void show_device(RoomOptions& options, const std::string& library);

}  // namespace ke::os::cuda
