// SPDX-License-Identifier: Apache-2.0
//
// The Python that has PyTorch and Triton, found by the packages that lie in it: nothing is run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ke::triton {

struct PythonToolchain {
  std::filesystem::path interpreter;
  std::vector<std::string> visible;  // folders that it reads
  std::string torch, triton;         // versions; empty: not found
};

// The first Python that has PyTorch, else the first. Errc::unavailable when there is none.
Result<PythonToolchain> find_python();

}  // namespace ke::triton
