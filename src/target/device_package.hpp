// SPDX-License-Identifier: Apache-2.0
//
// What building device code gives: one file with the machine code and all that a launcher must
// know. It is made in the room where a hostile source was compiled, so whoever reads it trusts
// nothing of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "target/launch_plan.hpp"

namespace ke::target {

// What the assembler says one kernel takes.
struct KernelResources {
  std::string kernel;
  int64_t registers = 0;                     // a thread
  int64_t stack_bytes = 0, spill_bytes = 0;  // a thread; spills: stores and loads
  int64_t shared_bytes = 0;                  // static, a block
  bool operator==(const KernelResources&) const = default;
};

struct DevicePackage {
  std::string architecture;  // "sm_90a"
  std::string launch_lines;  // the source's, which LaunchScript is parsed from
  std::vector<KernelResources> resources;
  std::string code;  // a cubin
};

std::string encode_package(const DevicePackage& package);
// Errc::invalid when it is damaged, its launch lines are refused, or the code is no ELF file.
Result<DevicePackage> decode_package(std::string_view bytes);

// The lines of a source that begin with "// ke:case ", "// ke:scratch " or "// ke:launch ".
std::string launch_lines_of(std::string_view source);

}  // namespace ke::target
