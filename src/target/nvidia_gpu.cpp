// SPDX-License-Identifier: Apache-2.0
#include "target/nvidia_gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

namespace ke::target {
namespace {

using Handle = void*;  // nvmlDevice_t

struct Management {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*capability)(Handle, int*, int*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;

  ~Management() {
    if (library != nullptr) dlclose(library);
  }

  template <class Function>
  bool get(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function != nullptr;
  }

  bool load() {
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && get("nvmlInit_v2", init) && get("nvmlShutdown", shutdown) &&
           get("nvmlDeviceGetCount_v2", count) && get("nvmlDeviceGetHandleByIndex_v2", device) &&
           get("nvmlDeviceGetName", name) &&
           get("nvmlDeviceGetCudaComputeCapability", capability) &&
           get("nvmlSystemGetDriverVersion", driver);
  }
};

Result<Gpu> first_gpu(const Management& management) {
  unsigned count = 0;
  if (management.count(&count) != 0 || count == 0) {
    return Error{Errc::unavailable,
                 "the NVIDIA driver sees no GPU here: make one visible to this machine, or choose "
                 "another --target"};
  }
  Gpu gpu;
  Handle device = nullptr;
  char name[128] = {}, driver[128] = {};
  const bool told = management.device(0, &device) == 0 &&
                    management.name(device, name, sizeof name) == 0 &&
                    management.capability(device, &gpu.major, &gpu.minor) == 0 &&
                    management.driver(driver, sizeof driver) == 0;
  if (!told) {
    return Error{Errc::unavailable,
                 "the NVIDIA driver does not say what its first GPU is: see what nvidia-smi shows"};
  }
  gpu.name = name;
  gpu.driver = driver;
  return gpu;
}

}  // namespace

std::string Gpu::architecture() const {
  return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

Result<Gpu> find_gpu() {
  Management management;
  if (!management.load()) {
    return Error{Errc::unavailable,
                 "no NVIDIA driver was found (libnvidia-ml.so.1): run this on a machine with a GPU "
                 "and its driver, or choose another --target"};
  }
  if (management.init() != 0) {
    return Error{Errc::unavailable, "the NVIDIA driver does not start: see what nvidia-smi says"};
  }
  Result<Gpu> gpu = first_gpu(management);
  management.shutdown();
  return gpu;
}

}  // namespace ke::target
