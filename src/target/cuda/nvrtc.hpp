// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's run-time compiler, loaded at run time: no SDK is needed to build this program, and
// PyTorch's wheels bring the library.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ke::cuda {

// Where libnvrtc is, by the first of: KE_NVRTC (a file); nvidia/*/lib beside the packages of the
// Python in KE_PYTHON, VIRTUAL_ENV, ./.venv or the PATH; the system's folders. Errc::unavailable,
// with what to do, when there is none.
Result<std::filesystem::path> find_nvrtc();

struct Compilation {
  bool compiled = false;
  std::string cubin;
  std::string log;  // what the compiler and ptxas (-v) say; hostile where the source is
};

// One thread at a time.
class Nvrtc {
 public:
  static Result<Nvrtc> load(const std::filesystem::path& library);
  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;
  ~Nvrtc();

  std::string version() const;  // "13.0"

  // To machine code of one architecture ("sm_90a"). <stdint.h> and "kernelevolve/device.h" are
  // there. A source that does not compile is a successful call; Errc::unavailable when the compiler
  // itself fails.
  Result<Compilation> compile(const std::string& source, std::string_view architecture,
                              const std::vector<std::string>& flags) const;

 private:
  struct Library;
  explicit Nvrtc(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// What a line `// ke:flags` of a source may ask the compiler for.
bool is_allowed_flag(std::string_view flag);
std::string allowed_flags();

}  // namespace ke::cuda
