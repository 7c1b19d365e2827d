// SPDX-License-Identifier: Apache-2.0
#include "target/python_prefixes.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace ke::target {
namespace {

namespace fs = std::filesystem;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> prefixes;
  const std::string python = from_environment("KE_PYTHON");
  if (!python.empty()) prefixes.push_back(fs::path(python).parent_path().parent_path());
  const std::string active = from_environment("VIRTUAL_ENV");
  if (!active.empty()) prefixes.emplace_back(active);
  std::error_code error;
  prefixes.push_back(fs::current_path(error) / ".venv");
  std::string path = from_environment("PATH");
  while (!path.empty()) {
    const size_t end = std::min(path.find(':'), path.size());
    const fs::path folder = path.substr(0, end);
    path.erase(0, end + 1);
    if (fs::exists(folder / "python3", error)) prefixes.push_back(folder.parent_path());
  }
  return prefixes;
}

}  // namespace ke::target
