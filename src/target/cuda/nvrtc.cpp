// SPDX-License-Identifier: Apache-2.0
#include "target/cuda/nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "embedded/ke_device_header.hpp"
#include "target/python_prefixes.hpp"

namespace ke::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kFlags = {
    "--use_fast_math",  "--fmad=true",       "--fmad=false",       "--ftz=true",
    "--prec-div=false", "--prec-sqrt=false", "--maxrregcount=128", "--maxrregcount=64"};

// What <stdint.h> is to a compiler that has no system headers.
constexpr std::string_view kStdint = R"(#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
#define INT64_C(value) value##LL
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define INT64_MIN (-INT64_MAX - 1)
)";

// libnvrtc.so.13 and the like, not the libraries beside it.
bool is_nvrtc(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("libnvrtc.so");
}

// Entries of a folder whose names begin so; none when it cannot be read.
std::vector<fs::path> entries(const fs::path& folder, std::string_view beginning) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(beginning)) found.push_back(it->path());
  }
  std::sort(found.rbegin(), found.rend());  // the newest first
  return found;
}

std::optional<fs::path> in_folder(const fs::path& folder) {
  for (const fs::path& file : entries(folder, "libnvrtc.so")) {
    if (is_nvrtc(file)) return file;
  }
  return std::nullopt;
}

// Beside the packages of a Python environment, as the wheels of PyTorch lay it out.
std::optional<fs::path> in_environment(const fs::path& prefix) {
  for (const fs::path& python : entries(prefix / "lib", "python3")) {
    for (const fs::path& package : entries(python / "site-packages" / "nvidia", "")) {
      if (auto found = in_folder(package / "lib")) return found;
    }
  }
  return std::nullopt;
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<fs::path> find_nvrtc() {
  std::error_code error;
  const std::string named = from_environment("KE_NVRTC");
  if (!named.empty()) {
    if (fs::is_regular_file(named, error)) return fs::absolute(named, error);
    return Error{Errc::unavailable,
                 fmt::format("KE_NVRTC names {}, which is no file; name libnvrtc.so there", named)};
  }
  for (const fs::path& prefix : target::python_prefixes()) {
    if (auto found = in_environment(prefix)) return fs::absolute(*found, error);
  }
  std::vector<fs::path> folders = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
  for (const fs::path& toolkit : entries("/usr/local", "cuda"))
    folders.push_back(toolkit / "lib64");
  for (const fs::path& folder : folders) {
    if (auto found = in_folder(folder)) return *found;
  }
  return Error{Errc::unavailable,
               "NVRTC was not found: install PyTorch for CUDA or the Python package "
               "nvidia-cuda-nvrtc, or name libnvrtc.so in KE_NVRTC"};
}

// --- The library --------------------------------------------------------------------------------

using NvrtcProgram = void*;  // nvrtcProgram

struct Nvrtc::Library {
  void* builtins = nullptr;  // which the library looks for by name only
  void* handle = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  int (*cubin_size)(NvrtcProgram, size_t*) = nullptr;
  int (*cubin)(NvrtcProgram, char*) = nullptr;
  const char* (*error_string)(int) = nullptr;

  ~Library() {
    if (handle != nullptr) dlclose(handle);
    if (builtins != nullptr) dlclose(builtins);
  }
};

namespace {

template <class Function>
bool resolve(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

// Ends a program whatever happens.
struct ProgramGuard {
  int (*destroy)(NvrtcProgram*);
  NvrtcProgram program = nullptr;
  ~ProgramGuard() {
    if (program != nullptr) destroy(&program);
  }
};

std::string text_of(NvrtcProgram program, int (*size)(NvrtcProgram, size_t*),
                    int (*get)(NvrtcProgram, char*)) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0) return {};
  std::string text(bytes, '\0');
  if (bytes == 0 || get(program, text.data()) != 0) return {};
  return text;
}

}  // namespace

Nvrtc::Nvrtc(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvrtc::Nvrtc(Nvrtc&&) noexcept = default;
Nvrtc& Nvrtc::operator=(Nvrtc&&) noexcept = default;
Nvrtc::~Nvrtc() = default;

Result<Nvrtc> Nvrtc::load(const fs::path& path) {
  auto library = std::make_unique<Library>();
  for (const fs::path& file : entries(path.parent_path(), "libnvrtc-builtins.so")) {
    library->builtins = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library->builtins != nullptr) break;
  }
  library->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) {
    return Error{Errc::unavailable,
                 fmt::format("NVRTC cannot be loaded: {}; name another in KE_NVRTC", dlerror())};
  }
  void* const handle = library->handle;
  const bool complete = resolve(handle, "nvrtcVersion", library->version) &&
                        resolve(handle, "nvrtcCreateProgram", library->create) &&
                        resolve(handle, "nvrtcDestroyProgram", library->destroy) &&
                        resolve(handle, "nvrtcCompileProgram", library->compile) &&
                        resolve(handle, "nvrtcGetProgramLogSize", library->log_size) &&
                        resolve(handle, "nvrtcGetProgramLog", library->log) &&
                        resolve(handle, "nvrtcGetCUBINSize", library->cubin_size) &&
                        resolve(handle, "nvrtcGetCUBIN", library->cubin) &&
                        resolve(handle, "nvrtcGetErrorString", library->error_string);
  if (complete) return Nvrtc(std::move(library));
  return Error{Errc::unavailable,
               fmt::format("{} is no NVRTC that makes cubins (CUDA 11.2 or newer does); name "
                           "another in KE_NVRTC",
                           path.string())};
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  return library_->version(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : "unknown";
}

Result<Compilation> Nvrtc::compile(const std::string& source, std::string_view architecture,
                                   const std::vector<std::string>& flags) const {
  const std::string stdint(kStdint), device(embedded::device_h);
  const std::string operands(embedded::device_operands_h);
  const std::array<const char*, 3> headers{stdint.c_str(), device.c_str(), operands.c_str()};
  const std::array<const char*, 3> names{"stdint.h", "kernelevolve/device.h",
                                         "kernelevolve/device_operands.h"};
  ProgramGuard guard{library_->destroy};
  const int made = library_->create(&guard.program, source.c_str(), "kernel.cu",
                                    static_cast<int>(headers.size()), headers.data(), names.data());
  if (made != 0) {
    return Error{Errc::unavailable,
                 fmt::format("NVRTC does not start: {}", library_->error_string(made))};
  }
  std::vector<std::string> options{fmt::format("--gpu-architecture={}", architecture),
                                   "--std=c++17", "--ptxas-options=-v"};
  options.insert(options.end(), flags.begin(), flags.end());
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const int code = library_->compile(guard.program, static_cast<int>(words.size()), words.data());
  Compilation result;
  result.log = text_of(guard.program, library_->log_size, library_->log);
  while (!result.log.empty() && result.log.back() == '\0') result.log.pop_back();
  constexpr int kCompilationFailed = 6;  // NVRTC_ERROR_COMPILATION
  if (code == kCompilationFailed) return result;
  if (code != 0) {
    return Error{Errc::unavailable,
                 fmt::format("NVRTC fails: {}. {}", library_->error_string(code), result.log)};
  }
  result.cubin = text_of(guard.program, library_->cubin_size, library_->cubin);
  result.compiled = !result.cubin.empty();
  return result;
}

bool is_allowed_flag(std::string_view flag) {
  return std::find(kFlags.begin(), kFlags.end(), flag) != kFlags.end();
}

std::string allowed_flags() { return fmt::format("{}", fmt::join(kFlags, " ")); }

}  // namespace ke::cuda
