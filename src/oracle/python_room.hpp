// SPDX-License-Identifier: Apache-2.0
//
// Where the oracle's Python runs: the embedded files unpacked by digest, a scrubbed environment,
// and a locked room that shows the interpreter, the problem's folder and the cache, without a
// network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/sandbox.hpp"

namespace ke::oracle {

// Writes the embedded files below cache_dir, once a version; returns the path of oracle.py.
Result<std::filesystem::path> unpack_python(const std::filesystem::path& cache_dir);

// Writes them into a folder, as they are.
Result<void> write_python(const std::filesystem::path& folder);

// Tensors of an input set are memory files.
inline constexpr int64_t kOpenFilesMax = 1 << 16;

// PATH, HOME and the like, and an allocator that keeps its memory: PyTorch's outputs then cost no
// page faults after the first call, as a kernel's that are handed in do not. That is the library's
// best side.
std::vector<std::string> python_environment(const std::filesystem::path& cache_dir,
                                            const std::string& home = "/tmp");

// The interpreter as an absolute path. Errc::unavailable when there is none of that name.
Result<std::string> absolute_python(const std::string& python);

// All paths absolute.
struct RoomNeeds {
  std::string python;
  std::filesystem::path problem_folder;
  std::filesystem::path cache_dir;  // writable inside, unless
  bool private_caches = false;      // only its embedded files are seen; caches are in /tmp
  int64_t memory_bytes = 0;
  int32_t processes_max = 0;        // and threads; 0: unlimited
  std::string driver = {};  // of the device that it computes on, as for dlopen; empty: none
};
Result<os::Room> prepare_python_room(const RoomNeeds& needs);

}  // namespace ke::oracle
