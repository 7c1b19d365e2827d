// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver, loaded at run time, so that one binary runs with and without it. Errors become
// sentences; what a kernel did wrong is left to the caller as a status (Status of cuda_api.hpp).
//
// Threads: Driver is immutable after load(). A Context is current in the thread that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/cuda_api.hpp"

namespace ke::os::cuda {

struct DeviceInfo {
  int ordinal = 0;
  std::string name;    // "NVIDIA H200"
  int capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_per_block_max = 0;  // bytes, opted in
  int64_t clock_khz = 0;             // the highest
  bool exports_descriptors = false;  // memory can be handed to another process as a descriptor
};

class Driver {
 public:
  // `library` is what dlopen is given. Errc::unavailable in one sentence: no driver, a driver that
  // lacks a function we need, no device, or cuInit failed.
  static Result<std::unique_ptr<Driver>> load(const std::string& library = "libcuda.so.1");
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const Api& api() const { return api_; }
  int version() const { return version_; }  // 13000 for CUDA 13.0
  const std::vector<DeviceInfo>& devices() const { return devices_; }

  // An error of ours: "cuMemCreate failed: CUDA_ERROR_OUT_OF_MEMORY" with Errc::unavailable for
  // too little memory, internal otherwise.
  Error error(Status status, std::string_view what) const;
  Result<void> check(Status status, std::string_view what) const {
    if (status == kSuccess) return {};
    return error(status, what);
  }
  std::string name_of(Status status) const;  // "CUDA_ERROR_ILLEGAL_ADDRESS"

 private:
  Driver() = default;
  Result<void> resolve(const std::string& library);
  Result<void> look_for_devices();
  Result<DeviceInfo> describe(int ordinal) const;

  void* library_ = nullptr;
  Api api_;
  int version_ = 0;
  std::vector<DeviceInfo> devices_;
};

// The device's primary context, current in this thread; it stays current until the object ends.
class Context {
 public:
  static Result<Context> open(const Driver& driver, int ordinal);
  Context(Context&& other) noexcept : driver_(other.driver_), device_(other.device_) {
    other.driver_ = nullptr;
  }
  Context& operator=(Context&&) = delete;
  ~Context();

 private:
  Context(const Driver* driver, DeviceOrdinal device) : driver_(driver), device_(device) {}
  const Driver* driver_;
  DeviceOrdinal device_;
};

}  // namespace ke::os::cuda
