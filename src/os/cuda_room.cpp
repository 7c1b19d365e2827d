// SPDX-License-Identifier: Apache-2.0
#include "os/cuda_room.hpp"

#include <filesystem>

namespace ke::os::cuda {

std::vector<VisiblePath> visible_paths(const std::string& library) {
  std::vector<VisiblePath> paths;
  const auto show = [&](const std::string& path, bool writable) {
    paths.push_back({.host = path, .inside = {}, .writable = writable, .optional = true});
  };
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia")) show(entry.path().string(), true);
  }
  for (const char* folder : {"/sys/devices", "/sys/bus/pci", "/sys/module", "/usr/local/nvidia"}) {
    show(folder, false);
  }
  if (library.find('/') != std::string::npos) show(library, false);
  return paths;
}

}  // namespace ke::os::cuda
