// SPDX-License-Identifier: Apache-2.0
//
// A locked room with one candidate source in it, where compilers and tools look at that source.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "domain/limits.hpp"
#include "eval/timing_lock.hpp"
#include "os/file_system.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"
#include "target/target.hpp"

namespace ke {

class BuildRoom {
 public:
  // The lock outlives the room; what runs here pauses while others are timed.
  static Result<BuildRoom> create(const std::string& source, const BuildRecipe& recipe,
                                  const Limits& limits, TimingLock& timing_lock);

  // A file of the room's folder, by its name there.
  Result<void> write(std::string_view name, std::string_view contents);
  std::filesystem::path output_path() const { return work_.path() / output_name_; }

  // Runs a command in the folder; {source}, {output} and {self} are replaced, and
  // <kernelevolve/kernel.h> is found. Of each stream output_bytes_max are kept. A command that
  // fails or passes the compiler's time is a successful run; Errc::not_found when there is no such
  // program.
  Result<os::RunResult> run(const std::vector<std::string>& command, int64_t output_bytes_max);

 private:
  BuildRoom(os::TemporaryDirectory work, os::Room room, const Limits& limits,
            TimingLock& timing_lock)
      : work_(std::move(work)),
        room_(std::move(room)),
        limits_(limits),
        timing_lock_(&timing_lock) {}

  os::TemporaryDirectory work_;
  os::Room room_;
  Limits limits_;
  TimingLock* timing_lock_;
  std::string source_name_, output_name_, self_;
};

}  // namespace ke
