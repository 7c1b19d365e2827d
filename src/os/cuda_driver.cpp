// SPDX-License-Identifier: Apache-2.0
#include "os/cuda_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace ke::os::cuda {
namespace {

constexpr int64_t kNameBytesMax = 256;

Error no_driver(std::string sentence) { return Error{Errc::unavailable, std::move(sentence)}; }

}  // namespace

Result<std::unique_ptr<Driver>> Driver::load(const std::string& library) {
  std::unique_ptr<Driver> driver(new Driver());
  TRY(driver->resolve(library));
  TRY(driver->look_for_devices());
  return driver;
}

// The driver keeps threads of its own, so it is never unloaded.
Driver::~Driver() = default;

Result<void> Driver::resolve(const std::string& library) {
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    return no_driver(
        fmt::format("there is no NVIDIA driver on this machine ({} cannot be loaded); "
                    "install one, or choose another target",
                    library));
  }
  const char* missing = nullptr;
#define KE_CUDA_RESOLVE(member, symbol, parameters)                                \
  api_.member = reinterpret_cast<decltype(api_.member)>(dlsym(library_, #symbol)); \
  if (api_.member == nullptr) missing = #symbol;
  KE_CUDA_FUNCTIONS(KE_CUDA_RESOLVE)
#undef KE_CUDA_RESOLVE
  if (missing != nullptr) {
    return no_driver(
        fmt::format("the NVIDIA driver is too old: it lacks {}; version 12.0 or later "
                    "of CUDA is needed",
                    missing));
  }
  return {};
}

Result<void> Driver::look_for_devices() {
  const Status status = api_.init(0);
  if (status == kNoDevice) return no_driver("the NVIDIA driver finds no device on this machine");
  if (status != kSuccess) {
    return no_driver(fmt::format("the NVIDIA driver does not start: {}", name_of(status)));
  }
  TRY(check(api_.driver_version(&version_), "cuDriverGetVersion"));
  int count = 0;
  TRY(check(api_.device_count(&count), "cuDeviceGetCount"));
  for (int ordinal = 0; ordinal < count; ++ordinal) devices_.push_back(TRY(describe(ordinal)));
  if (devices_.empty()) return no_driver("the NVIDIA driver finds no device on this machine");
  return {};
}

Result<DeviceInfo> Driver::describe(int ordinal) const {
  DeviceOrdinal device = 0;
  TRY(check(api_.device_get(&device, ordinal), "cuDeviceGet"));
  char name[kNameBytesMax] = {};
  TRY(check(api_.device_name(name, sizeof name - 1, device), "cuDeviceGetName"));
  size_t bytes = 0;
  TRY(check(api_.device_memory(&bytes, device), "cuDeviceTotalMem"));
  int values[7] = {};
  constexpr DeviceAttribute kAsked[7] = {DeviceAttribute::capability_major,
                                         DeviceAttribute::capability_minor,
                                         DeviceAttribute::multiprocessors,
                                         DeviceAttribute::l2_bytes,
                                         DeviceAttribute::max_shared_per_block_optin,
                                         DeviceAttribute::clock_khz,
                                         DeviceAttribute::posix_descriptor_handles};
  for (int i = 0; i < 7; ++i) {
    TRY(check(api_.device_attribute(&values[i], static_cast<int>(kAsked[i]), device),
              "cuDeviceGetAttribute"));
  }
  return DeviceInfo{.ordinal = ordinal,
                    .name = name,
                    .capability = values[0] * 10 + values[1],
                    .multiprocessors = values[2],
                    .memory_bytes = static_cast<int64_t>(bytes),
                    .l2_bytes = values[3],
                    .shared_per_block_max = values[4],
                    .clock_khz = values[5],
                    .exports_descriptors = values[6] != 0};
}

std::string Driver::name_of(Status status) const {
  const char* name = nullptr;
  if (api_.error_name(status, &name) == kSuccess && name != nullptr) return name;
  return fmt::format("error {}", status);
}

Error Driver::error(Status status, std::string_view what) const {
  const Errc code = status == kOutOfMemory ? Errc::unavailable : Errc::internal;
  return Error{code, fmt::format("{} failed: {}", what, name_of(status))};
}

Result<Context> Context::open(const Driver& driver, int ordinal) {
  DeviceOrdinal device = 0;
  TRY(driver.check(driver.api().device_get(&device, ordinal), "cuDeviceGet"));
  ContextHandle handle = nullptr;
  TRY(driver.check(driver.api().context_retain(&handle, device), "cuDevicePrimaryCtxRetain"));
  Context context(&driver, device);
  TRY(driver.check(driver.api().context_set_current(handle), "cuCtxSetCurrent"));
  return context;
}

Context::~Context() {
  if (driver_ == nullptr) return;
  (void)driver_->api().context_set_current(nullptr);
  (void)driver_->api().context_release(device_);
}

}  // namespace ke::os::cuda
