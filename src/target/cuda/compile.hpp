// SPDX-License-Identifier: Apache-2.0
//
// The compiler of the cuda target, as a command that runs in a build room: a source in, a device
// package out.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "target/cuda/nvrtc.hpp"
#include "target/device_package.hpp"

namespace ke::cuda {

// Arguments: --nvrtc FILE --arch NAME [--flag FLAG]... SOURCE OUTPUT. 0: compiled, with the log on
// stderr; 1: the source is wrong ("error: …" and the log); 2: it could not be tried.
int compile_command(std::span<const std::string> arguments);

// A source to a package. Errc::invalid: the source is wrong, the message is the compiler's log;
// Errc::unavailable: the compiler fails. `log` gets what it says of a source that compiles.
Result<target::DevicePackage> compile_package(const Nvrtc& nvrtc, const std::string& source,
                                              std::string_view architecture,
                                              const std::vector<std::string>& flags,
                                              std::string& log);

// What the assembler's log says of each kernel, in its order. Lines it does not know are skipped.
std::vector<target::KernelResources> resources_of(std::string_view log);

}  // namespace ke::cuda
