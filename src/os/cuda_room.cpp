// SPDX-License-Identifier: Apache-2.0
#include "os/cuda_room.hpp"

#include <filesystem>

namespace ke::os::cuda {

void show_device(RoomOptions& options, const std::string& library) {
  options.proc_whole = true;
  options.proc_writable = true;
  const auto show = [&](const std::string& path, bool device) {
    options.paths.push_back(
        {.host = path, .inside = {}, .writable = device, .optional = true, .device = device});
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
}

}  // namespace ke::os::cuda
