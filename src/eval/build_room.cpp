// SPDX-License-Identifier: Apache-2.0
#include "eval/build_room.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "embedded/ke_kernel_header.hpp"

namespace ke {
namespace {

constexpr std::string_view kWork = "/work";  // the folder inside the room

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// How many times its own time a build may take, waiting included.
constexpr int kStandingStillMax = 10;

}  // namespace

Result<BuildRoom> BuildRoom::create(const std::string& source, const BuildRecipe& recipe,
                                    const Limits& limits, TimingLock& timing_lock) {
  os::TemporaryDirectory work = TRY(os::TemporaryDirectory::create("kernelevolve-build"));
  TRY(os::make_directories(work.path() / "kernelevolve"));
  TRY(os::write_file_atomically(work.path() / "kernelevolve" / "kernel.h", embedded::kernel_h));
  TRY(os::write_file_atomically(work.path() / recipe.source_name, source));

  const std::filesystem::path self = TRY(os::own_executable());
  os::RoomOptions options;
  options.paths = os::toolchain_paths();
  for (const std::string& path : recipe.visible) options.paths.push_back({path, "", false, false});
  options.paths.push_back({self.string(), "", false, false});
  options.paths.push_back({work.path().string(), std::string(kWork), true, false});
  options.system_calls = os::SystemCalls::build;
  options.memory_bytes = limits.compile_memory_bytes;
  options.processes_max = 64;
  os::Room room = TRY(os::Room::prepare(options));
  BuildRoom made(std::move(work), std::move(room), limits, timing_lock);
  made.source_name_ = recipe.source_name;
  made.output_name_ = recipe.output_name;
  made.self_ = self.string();
  return made;
}

Result<void> BuildRoom::write(std::string_view name, std::string_view contents) {
  return os::write_file_atomically(work_.path() / name, contents);
}

Result<os::RunResult> BuildRoom::run(const std::vector<std::string>& command,
                                     int64_t output_bytes_max) {
  os::RunOptions run;
  run.process.argv = command;
  for (std::string& word : run.process.argv) {
    replace_all(word, "{self}", self_);
    replace_all(word, "{source}", fmt::format("{}/{}", kWork, source_name_));
    replace_all(word, "{output}", fmt::format("{}/{}", kWork, output_name_));
  }
  run.process.environment = os::minimal_environment();
  run.process.environment.push_back(fmt::format("CPATH={}", kWork));
  run.process.working_directory = kWork;
  run.process.room = &room_;
  // A build stands still while somebody judges, so its own time is what is limited; a tool that
  // sleeps is ended by the clock.
  run.process.limits.cpu_seconds =
      std::max<int64_t>(1, limits_.compile_max / std::chrono::seconds(1));
  run.time_max = kStandingStillMax * limits_.compile_max;
  run.output_bytes_max = output_bytes_max;
  run.started = [this](pid_t group) { timing_lock_->add_group(group); };
  run.ending = [this](pid_t group) { timing_lock_->remove_group(group); };
  return os::run(run);
}

}  // namespace ke
