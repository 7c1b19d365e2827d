// SPDX-License-Identifier: Apache-2.0
//
// A virtual environment's interpreter is a link; its library lies where pyvenv.cfg says (PEP 405).
#include "oracle/python_room.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/digest.hpp"
#include "embedded/ke_oracle_python.hpp"
#include "os/cuda_room.hpp"
#include "os/file_system.hpp"

namespace ke::oracle {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kConfigBytesMax = 64 << 10;
constexpr int64_t kRoomTmpBytes = 1 << 30;

Result<void> write_missing(const fs::path& path, std::string_view contents) {
  Result<std::string> found = os::read_file(path, static_cast<int64_t>(contents.size()) + 1);
  if (found && *found == contents) return {};
  return os::write_file_atomically(path, contents);
}

// The folder of the interpreter that a virtual environment is based on, or nothing.
fs::path base_folder(const fs::path& environment) {
  Result<std::string> config = os::read_file(environment / "pyvenv.cfg", kConfigBytesMax);
  if (!config) return {};
  constexpr std::string_view kKey = "home = ";
  const size_t start = config->find(kKey);
  if (start == std::string::npos) return {};
  const size_t from = start + kKey.size();
  return fs::path(config->substr(from, config->find('\n', from) - from)).parent_path();
}

fs::path unpacked(const fs::path& cache_dir) {
  std::string all;
  for (const embedded::EmbeddedFile& file : embedded::ke_oracle_python_files()) {
    all.append(file.name).append(1, '\n').append(file.contents);
  }
  return cache_dir / ("oracle-" + digest_of(all).short_hex());
}

void show(std::vector<os::VisiblePath>& paths, const fs::path& path, bool writable) {
  if (path.empty() || path == path.root_path()) return;
  const std::string host = path.string();
  for (const os::VisiblePath& shown : paths) {
    const bool inside = host == shown.host || host.starts_with(shown.host + "/");
    if (inside && shown.writable == writable) return;
  }
  paths.push_back(os::VisiblePath{.host = host, .writable = writable, .optional = true});
}

}  // namespace

Result<fs::path> unpack_python(const fs::path& cache_dir) {
  const fs::path folder = unpacked(cache_dir);
  TRY(os::make_directories(folder));
  TRY(write_python(folder));
  return folder / "oracle.py";
}

Result<void> write_python(const fs::path& folder) {
  for (const embedded::EmbeddedFile& file : embedded::ke_oracle_python_files()) {
    TRY(write_missing(folder / file.name, file.contents));
  }
  return {};
}

std::vector<std::string> python_environment(const fs::path& cache_dir, const std::string& home) {
  std::vector<std::string> environment = os::minimal_environment(home);
  // mmap_max=0 takes every block from the heap, trim_threshold never gives it back, hugetlb=1
  // advises huge pages. Without caches of small chunks (tcache_count=0, mxfast=0) the scraps of
  // aligned blocks merge again at once; otherwise large blocks are reused only when several copies
  // exist (glibc's manual, "Memory Allocation Tunables").
  environment.push_back(
      "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:"
      "glibc.malloc.hugetlb=1:glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0");
  // The room has no /etc/passwd, and PyTorch asks who the user is.
  environment.push_back("USER=kernelevolve");
  environment.push_back("TORCHINDUCTOR_CACHE_DIR=" + (cache_dir / "inductor").string());
  environment.push_back("TRITON_CACHE_DIR=" + (cache_dir / "kernels").string());
  environment.push_back("TORCHINDUCTOR_COMPILE_THREADS=1");  // compilers stay in one process group
  // Inductor would keep its precompiled header in /tmp, which is each oracle's own: 15 s of
  // compiling and 150 MB an oracle, to save 4 s a kernel.
  environment.push_back("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS=0");
  return environment;
}

Result<std::string> absolute_python(const std::string& python) {
  Result<fs::path> found = os::find_program(python);
  if (found) return fs::absolute(*found).lexically_normal().string();
  return Error{Errc::unavailable,
               fmt::format("there is no Python interpreter '{}'; install one with torch", python)};
}

Result<os::Room> prepare_python_room(const RoomNeeds& needs) {
  os::RoomOptions options;
  options.paths = os::toolchain_paths();
  options.system_calls = os::SystemCalls::all;
  options.proc_whole = true;  // libraries read /proc/cpuinfo and /proc/meminfo
  options.tmp_bytes = kRoomTmpBytes;
  options.memory_bytes = needs.memory_bytes;
  options.processes_max = needs.processes_max;
  const fs::path python(needs.python);
  const fs::path environment = python.parent_path().parent_path();
  show(options.paths, environment, false);
  show(options.paths, base_folder(environment), false);
  std::error_code error;
  const fs::path real = fs::canonical(python, error);
  if (!error) show(options.paths, real.parent_path().parent_path(), false);
  show(options.paths, "/sys/devices/system", false);  // processor topology
  show(options.paths, "/sys/kernel/mm", false);       // huge page sizes
  show(options.paths, needs.problem_folder, false);
  if (!needs.private_caches) show(options.paths, needs.cache_dir, true);
  show(options.paths, unpacked(needs.cache_dir), false);  // the next problem's oracle reads it
  if (!needs.driver.empty()) os::cuda::show_device(options, needs.driver);
  return os::Room::prepare(options);
}

}  // namespace ke::oracle
