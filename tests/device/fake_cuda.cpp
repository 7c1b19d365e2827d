// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the CUDA driver on a machine without one: the same functions, played on the
// processor. Device memory is a memory file, so that it travels between processes and can be mapped
// for reading alone; a module is a shared object whose kernels are functions; a launch runs in a
// process of its own, so that whatever it does wrong becomes a status that stays, as on a device.
//
// A module exports, for a kernel NAME:
//   void ke_fake_NAME(const unsigned grid[3], const unsigned block[3], unsigned shared,
//                     void** arguments)
//   const int ke_fake_sizes_NAME[]    bytes of each argument, ended by 0
//
// Timing is the wall clock's. Everything happens at once: streams only keep the order.
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "os/cuda_api.hpp"

namespace ke::os::cuda {

namespace {

constexpr size_t kGranularity = 64 << 10;
constexpr Status kInvalidValue = 1;
constexpr Status kInvalidHandle = 400;

struct Kernel {
  void (*run)(const unsigned* grid, const unsigned* block, unsigned shared, void** arguments);
  const int* sizes;
  int dynamic_shared_max = 48 << 10;
};

struct Launch {
  const Kernel* kernel = nullptr;
  unsigned grid[3], block[3], shared = 0;
  std::vector<std::string> arguments;
};

struct PhysicalMemory {
  int descriptor;
  size_t bytes;
};

Status broken = kSuccess;  // what a kernel did wrong stays until the process ends
int64_t allocated_bytes = 0;

int64_t memory_bytes() {
  const char* mebibytes = getenv("KE_FAKE_CUDA_MIB");
  return int64_t{mebibytes != nullptr ? atoi(mebibytes) : 1024} << 20;
}

Status run(const Launch& launch) {
  if (broken != kSuccess) return broken;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    std::vector<void*> arguments;
    for (const std::string& bytes : launch.arguments) {
      arguments.push_back(const_cast<char*>(bytes.data()));
    }
    launch.kernel->run(launch.grid, launch.block, launch.shared, arguments.data());
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return broken = kInvalidValue;
  if (WIFSIGNALED(status)) return broken = kIllegalAddress;
  return kSuccess;
}

Launch launch_of(FunctionHandle function, const unsigned (&sizes)[7], void** arguments) {
  Launch launch{.kernel = reinterpret_cast<const Kernel*>(function),
                .grid = {sizes[0], sizes[1], sizes[2]},
                .block = {sizes[3], sizes[4], sizes[5]},
                .shared = sizes[6],
                .arguments = {}};
  for (const int* size = launch.kernel->sizes; *size != 0; ++size, ++arguments) {
    launch.arguments.emplace_back(static_cast<const char*>(*arguments), static_cast<size_t>(*size));
  }
  return launch;
}

}  // namespace

struct CUstream_st {
  std::vector<Launch>* captured = nullptr;
};
struct CUgraph_st {
  std::vector<Launch> launches;
};
struct CUgraphExec_st {
  std::vector<Launch> launches;
};
struct CUevent_st {
  timespec at;
};

extern "C" {

// Asked for by name, to know that the device's memory is the processor's.
int ke_played_on_the_processor() { return 1; }

Status cuInit(unsigned) {
  return getenv("KE_FAKE_CUDA_NO_DEVICE") != nullptr ? kNoDevice : kSuccess;
}
Status cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Status cuGetErrorName(Status status, const char** name) {
  *name = status == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : status == kOutOfMemory  ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE"
          : status == kNotFound     ? "CUDA_ERROR_NOT_FOUND"
                                    : "CUDA_ERROR_INVALID_VALUE";
  return kSuccess;
}
Status cuDeviceGetCount(int* count) {
  *count = 1;
  return kSuccess;
}
Status cuDeviceGet(DeviceOrdinal* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? kSuccess : kInvalidValue;
}
Status cuDeviceGetName(char* name, int bytes, DeviceOrdinal) {
  strncpy(name, "a device played on the processor", static_cast<size_t>(bytes));
  return kSuccess;
}
Status cuDeviceTotalMem_v2(size_t* bytes, DeviceOrdinal) {
  *bytes = static_cast<size_t>(memory_bytes());
  return kSuccess;
}
Status cuDeviceGetAttribute(int* value, int attribute, DeviceOrdinal) {
  switch (attribute) {
    case static_cast<int>(DeviceAttribute::capability_major):
      *value = 9;
      break;
    case static_cast<int>(DeviceAttribute::capability_minor):
      *value = 0;
      break;
    case static_cast<int>(DeviceAttribute::multiprocessors):
      *value = 2;
      break;
    case static_cast<int>(DeviceAttribute::l2_bytes):
      *value = 1 << 20;
      break;
    case static_cast<int>(DeviceAttribute::max_shared_per_block_optin):
      *value = 227 << 10;
      break;
    case static_cast<int>(DeviceAttribute::clock_khz):
      *value = 1'000'000;
      break;
    default:
      *value = 1;
      break;
  }
  return kSuccess;
}
Status cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceOrdinal) {
  *context = nullptr;
  return kSuccess;
}
Status cuDevicePrimaryCtxRelease_v2(DeviceOrdinal) { return kSuccess; }
Status cuCtxSetCurrent(ContextHandle) { return kSuccess; }
Status cuCtxSynchronize() { return broken; }
Status cuCtxResetPersistingL2Cache() { return broken; }
Status cuMemGetInfo_v2(size_t* left, size_t* total) {
  *total = static_cast<size_t>(memory_bytes());
  *left = *total - static_cast<size_t>(allocated_bytes);
  return kSuccess;
}
Status cuMemGetAllocationGranularity(size_t* bytes, const AllocationProperties*, int) {
  *bytes = kGranularity;
  return kSuccess;
}
Status cuMemCreate(AllocationHandle* handle, size_t bytes, const AllocationProperties*,
                   unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  if (allocated_bytes + static_cast<int64_t>(bytes) > memory_bytes()) return kOutOfMemory;
  const int descriptor = memfd_create("device", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    return kOutOfMemory;
  }
  allocated_bytes += static_cast<int64_t>(bytes);
  *handle = reinterpret_cast<AllocationHandle>(new PhysicalMemory{descriptor, bytes});
  return kSuccess;
}
Status cuMemRelease(AllocationHandle handle) {
  auto* memory = reinterpret_cast<PhysicalMemory*>(handle);
  allocated_bytes -= static_cast<int64_t>(memory->bytes);
  close(memory->descriptor);
  delete memory;
  return kSuccess;
}
Status cuMemAddressReserve(DevicePointer* address, size_t bytes, size_t, DevicePointer,
                           unsigned long long) {
  if (bytes % kGranularity != 0) return kInvalidValue;
  // A granule more, to begin at a multiple of one.
  void* at = mmap(nullptr, bytes + kGranularity, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  *address = (reinterpret_cast<DevicePointer>(at) + kGranularity - 1) / kGranularity * kGranularity;
  return kSuccess;
}
Status cuMemAddressFree(DevicePointer, size_t) { return kSuccess; }  // stays reserved
Status cuMemMap(DevicePointer address, size_t bytes, size_t, AllocationHandle handle,
                unsigned long long) {
  auto* memory = reinterpret_cast<PhysicalMemory*>(handle);
  if (bytes != memory->bytes) return kInvalidValue;
  void* at = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                  memory->descriptor, 0);
  return at == MAP_FAILED ? kInvalidValue : kSuccess;
}
Status cuMemUnmap(DevicePointer address, size_t bytes) {
  mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return kSuccess;
}
Status cuMemSetAccess(DevicePointer address, size_t bytes, const AccessDescription* access,
                      size_t) {
  const int protection = access->flags == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
  return mprotect(reinterpret_cast<void*>(address), bytes, protection) == 0 ? kSuccess
                                                                            : kInvalidValue;
}
Status cuMemExportToShareableHandle(void* out, AllocationHandle handle, int type,
                                    unsigned long long) {
  if (type != kPosixDescriptor) return kInvalidValue;
  *static_cast<int*>(out) = dup(reinterpret_cast<PhysicalMemory*>(handle)->descriptor);
  return kSuccess;
}
Status cuMemImportFromShareableHandle(AllocationHandle* handle, void* descriptor, int type) {
  struct stat about {};
  const int number = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
  if (type != kPosixDescriptor || fstat(number, &about) != 0) return kInvalidHandle;
  const auto bytes = static_cast<size_t>(about.st_size);
  allocated_bytes += about.st_size;
  *handle = reinterpret_cast<AllocationHandle>(new PhysicalMemory{dup(number), bytes});
  return kSuccess;
}
Status cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  memcpy(reinterpret_cast<void*>(to), from, bytes);
  return broken;
}
Status cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return broken;
}
Status cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, StreamHandle) {
  memset(reinterpret_cast<void*>(to), value, bytes);
  return broken;
}
Status cuModuleLoadData(ModuleHandle* module, const void* image) {
  if (memcmp(image, "\177ELF", 4) != 0) return kInvalidImage;
  // The length of an image is in its own headers; the section table comes last in a shared object.
  const auto* bytes = static_cast<const unsigned char*>(image);
  uint64_t sections = 0;
  uint16_t entry = 0, count = 0;
  memcpy(&sections, bytes + 40, sizeof sections);
  memcpy(&entry, bytes + 58, sizeof entry);
  memcpy(&count, bytes + 60, sizeof count);
  const size_t length = sections + size_t{entry} * count;
  const int file = memfd_create("module", MFD_CLOEXEC);
  if (write(file, image, length) != static_cast<ssize_t>(length)) return kInvalidImage;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(file);
  *module = static_cast<ModuleHandle>(library);
  return library != nullptr ? kSuccess : kInvalidImage;
}
Status cuModuleUnload(ModuleHandle module) {
  dlclose(module);
  return kSuccess;
}
Status cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  void* run = dlsym(module, (std::string("ke_fake_") + name).c_str());
  const void* sizes = dlsym(module, (std::string("ke_fake_sizes_") + name).c_str());
  if (run == nullptr || sizes == nullptr) return kNotFound;
  *function = reinterpret_cast<FunctionHandle>(
      new Kernel{.run = reinterpret_cast<decltype(Kernel::run)>(run),
                 .sizes = static_cast<const int*>(sizes)});
  return kSuccess;
}
Status cuFuncGetAttribute(int* value, int attribute, FunctionHandle) {
  *value = attribute == static_cast<int>(FunctionAttribute::threads_max) ? 1024 : 0;
  return kSuccess;
}
Status cuFuncSetAttribute(FunctionHandle function, int attribute, int value) {
  if (attribute != static_cast<int>(FunctionAttribute::dynamic_shared_max)) return kInvalidValue;
  reinterpret_cast<Kernel*>(function)->dynamic_shared_max = value;
  return kSuccess;
}
Status cuLaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      StreamHandle stream, void** arguments, void**) {
  const bool possible =
      grid_x != 0 && grid_y != 0 && grid_z != 0 && block_x != 0 && block_y != 0 && block_z != 0 &&
      uint64_t{block_x} * block_y * block_z <= 1024 &&
      static_cast<int>(shared) <= reinterpret_cast<Kernel*>(function)->dynamic_shared_max;
  if (!possible) return kInvalidValue;
  Launch launch =
      launch_of(function, {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared}, arguments);
  if (stream != nullptr && stream->captured != nullptr) {
    stream->captured->push_back(std::move(launch));
    return kSuccess;
  }
  (void)run(launch);  // what it did wrong is told when somebody waits for it
  return kSuccess;
}
Status cuStreamCreate(StreamHandle* stream, unsigned) {
  *stream = new CUstream_st;
  return kSuccess;
}
Status cuStreamDestroy_v2(StreamHandle stream) {
  delete stream;
  return kSuccess;
}
Status cuStreamSynchronize(StreamHandle) { return broken; }
Status cuStreamBeginCapture_v2(StreamHandle stream, int) {
  stream->captured = new std::vector<Launch>;
  return kSuccess;
}
Status cuStreamEndCapture(StreamHandle stream, GraphHandle* graph) {
  *graph = new CUgraph_st{std::move(*stream->captured)};
  delete stream->captured;
  stream->captured = nullptr;
  return kSuccess;
}
Status cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->launches};
  return kSuccess;
}
Status cuGraphLaunch(GraphExecHandle exec, StreamHandle) {
  for (const Launch& launch : exec->launches) (void)run(launch);
  return kSuccess;
}
Status cuGraphExecDestroy(GraphExecHandle exec) {
  delete exec;
  return kSuccess;
}
Status cuGraphDestroy(GraphHandle graph) {
  delete graph;
  return kSuccess;
}
Status cuEventCreate(EventHandle* event, unsigned) {
  *event = new CUevent_st{};
  return kSuccess;
}
Status cuEventDestroy_v2(EventHandle event) {
  delete event;
  return kSuccess;
}
Status cuEventRecord(EventHandle event, StreamHandle) {
  clock_gettime(CLOCK_MONOTONIC, &event->at);
  return kSuccess;
}
Status cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  *milliseconds = static_cast<float>(to->at.tv_sec - from->at.tv_sec) * 1e3F +
                  static_cast<float>(to->at.tv_nsec - from->at.tv_nsec) * 1e-6F;
  return kSuccess;
}

}  // extern "C"

}  // namespace ke::os::cuda
