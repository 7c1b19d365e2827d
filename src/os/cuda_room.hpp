// SPDX-License-Identifier: Apache-2.0
//
// What a locked room must show for a CUDA driver to work in it.
#pragma once

#include <string>
#include <vector>

#include "os/sandbox.hpp"

namespace ke::os::cuda {

// The driver talks to its devices through nodes, and finds them through the system's own folders.
// `library` is the driver, as for dlopen; a path is shown too. The room's /proc must be whole.
std::vector<VisiblePath> visible_paths(const std::string& library);

}  // namespace ke::os::cuda
