// SPDX-License-Identifier: Apache-2.0
//
// Where Python environments may be: of $KE_PYTHON, an activated one, ./.venv, those in the PATH.
#pragma once

#include <filesystem>
#include <vector>

namespace ke::target {

// Folders that hold bin/ and lib/, the first to be preferred. They need not exist.
std::vector<std::filesystem::path> python_prefixes();

}  // namespace ke::target
