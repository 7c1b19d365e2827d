// SPDX-License-Identifier: Apache-2.0
//
// The launcher: the process that launches a candidate's device code on command.
#pragma once

#include <string>

namespace ke::launcher {

// Obeys commands on descriptor kSocket until it closes; returns the process's exit code. `library`
// is the driver's. Called once, in a process that does nothing else.
int child_main(const std::string& library);

}  // namespace ke::launcher
