// SPDX-License-Identifier: Apache-2.0
//
// The part of the CUDA driver API that we call, declared here because no vendor's kit is needed to
// build: names, values and layouts are those of the driver API's public reference. The library
// itself is loaded at run time (cuda_driver.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ke::os::cuda {

using Status = int;  // CUresult
using DeviceOrdinal = int;
using DevicePointer = uint64_t;
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;
using StreamHandle = struct CUstream_st*;
using EventHandle = struct CUevent_st*;
using GraphHandle = struct CUgraph_st*;
using GraphExecHandle = struct CUgraphExec_st*;
using AllocationHandle = uint64_t;  // CUmemGenericAllocationHandle

inline constexpr Status kSuccess = 0;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForDevice = 209;
inline constexpr Status kNotFound = 500;
inline constexpr Status kNotReady = 600;
inline constexpr Status kIllegalAddress = 700;
inline constexpr Status kLaunchOutOfResources = 701;

// CUdevice_attribute
enum class DeviceAttribute : int {
  max_shared_per_block = 8,
  clock_khz = 13,
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  capability_major = 75,
  capability_minor = 76,
  max_shared_per_multiprocessor = 81,
  registers_per_multiprocessor = 82,
  max_shared_per_block_optin = 97,
  posix_descriptor_handles = 103,
};

// CUfunction_attribute
enum class FunctionAttribute : int {
  threads_max = 0,
  shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  dynamic_shared_max = 8,
};

struct MemoryLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int id = 0;
};

// CUmemAllocationProp
struct AllocationProperties {
  int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED: what cuMemCreate makes
  int handle_types = 0;  // 1: can be exported as a POSIX file descriptor
  MemoryLocation location;
  void* win32 = nullptr;
  struct {
    unsigned char compression = 0;
    unsigned char rdma = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};
static_assert(sizeof(AllocationProperties) == 32);

// CUmemAccessDesc
struct AccessDescription {
  MemoryLocation location;
  int flags = 0;  // 1: read, 3: read and write
};
static_assert(sizeof(AccessDescription) == 12);

inline constexpr int kPosixDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
inline constexpr int kCaptureThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
inline constexpr unsigned kStreamNonBlocking = 1;

// One row a function: the member's name, the exported symbol, its parameters.
#define KE_CUDA_FUNCTIONS(X)                                                                     \
  X(init, cuInit, (unsigned))                                                                    \
  X(driver_version, cuDriverGetVersion, (int*))                                                  \
  X(error_name, cuGetErrorName, (Status, const char**))                                          \
  X(device_count, cuDeviceGetCount, (int*))                                                      \
  X(device_get, cuDeviceGet, (DeviceOrdinal*, int))                                              \
  X(device_name, cuDeviceGetName, (char*, int, DeviceOrdinal))                                   \
  X(device_memory, cuDeviceTotalMem_v2, (size_t*, DeviceOrdinal))                                \
  X(device_attribute, cuDeviceGetAttribute, (int*, int, DeviceOrdinal))                          \
  X(context_retain, cuDevicePrimaryCtxRetain, (ContextHandle*, DeviceOrdinal))                   \
  X(context_release, cuDevicePrimaryCtxRelease_v2, (DeviceOrdinal))                              \
  X(context_set_current, cuCtxSetCurrent, (ContextHandle))                                       \
  X(context_synchronize, cuCtxSynchronize, ())                                                   \
  X(reset_persisting_l2, cuCtxResetPersistingL2Cache, ())                                        \
  X(memory_info, cuMemGetInfo_v2, (size_t*, size_t*))                                            \
  X(granularity, cuMemGetAllocationGranularity, (size_t*, const AllocationProperties*, int))     \
  X(memory_create, cuMemCreate,                                                                  \
    (AllocationHandle*, size_t, const AllocationProperties*, unsigned long long))                \
  X(memory_release, cuMemRelease, (AllocationHandle))                                            \
  X(address_reserve, cuMemAddressReserve,                                                        \
    (DevicePointer*, size_t, size_t, DevicePointer, unsigned long long))                         \
  X(address_free, cuMemAddressFree, (DevicePointer, size_t))                                     \
  X(memory_map, cuMemMap, (DevicePointer, size_t, size_t, AllocationHandle, unsigned long long)) \
  X(memory_unmap, cuMemUnmap, (DevicePointer, size_t))                                           \
  X(memory_access, cuMemSetAccess, (DevicePointer, size_t, const AccessDescription*, size_t))    \
  X(memory_export, cuMemExportToShareableHandle,                                                 \
    (void*, AllocationHandle, int, unsigned long long))                                          \
  X(memory_import, cuMemImportFromShareableHandle, (AllocationHandle*, void*, int))              \
  X(copy_to_device, cuMemcpyHtoD_v2, (DevicePointer, const void*, size_t))                       \
  X(copy_to_host, cuMemcpyDtoH_v2, (void*, DevicePointer, size_t))                               \
  X(fill_bytes, cuMemsetD8Async, (DevicePointer, unsigned char, size_t, StreamHandle))           \
  X(module_load, cuModuleLoadData, (ModuleHandle*, const void*))                                 \
  X(module_unload, cuModuleUnload, (ModuleHandle))                                               \
  X(module_function, cuModuleGetFunction, (FunctionHandle*, ModuleHandle, const char*))          \
  X(function_attribute, cuFuncGetAttribute, (int*, int, FunctionHandle))                         \
  X(function_set_attribute, cuFuncSetAttribute, (FunctionHandle, int, int))                      \
  X(launch, cuLaunchKernel,                                                                      \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
     StreamHandle, void**, void**))                                                              \
  X(stream_create, cuStreamCreate, (StreamHandle*, unsigned))                                    \
  X(stream_destroy, cuStreamDestroy_v2, (StreamHandle))                                          \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle))                                     \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (StreamHandle, int))                          \
  X(stream_end_capture, cuStreamEndCapture, (StreamHandle, GraphHandle*))                        \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
    (GraphExecHandle*, GraphHandle, unsigned long long))                                         \
  X(graph_launch, cuGraphLaunch, (GraphExecHandle, StreamHandle))                                \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle))                                   \
  X(graph_destroy, cuGraphDestroy, (GraphHandle))                                                \
  X(event_create, cuEventCreate, (EventHandle*, unsigned))                                       \
  X(event_destroy, cuEventDestroy_v2, (EventHandle))                                             \
  X(event_record, cuEventRecord, (EventHandle, StreamHandle))                                    \
  X(event_elapsed_ms, cuEventElapsedTime, (float*, EventHandle, EventHandle))

struct Api {
#define KE_CUDA_MEMBER(member, symbol, parameters) Status(*member) parameters = nullptr;
  KE_CUDA_FUNCTIONS(KE_CUDA_MEMBER)
#undef KE_CUDA_MEMBER
};

}  // namespace ke::os::cuda
