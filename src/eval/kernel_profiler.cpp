// SPDX-License-Identifier: Apache-2.0
#include "eval/kernel_profiler.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "eval/build_room.hpp"

namespace ke {
namespace {

constexpr int64_t kListingBytesMax = 16_MiB;  // a disassembly

class RoomTools final : public ToolRunner {
 public:
  explicit RoomTools(BuildRoom& room) : room_(room) {}

  Result<void> write(std::string_view name, std::string_view contents) override {
    return room_.write(name, contents);
  }

  Result<std::string> run(const std::vector<std::string>& command) override {
    KE_ASSERT(!command.empty());
    const std::string& tool = command.front();
    Result<os::RunResult> ran = room_.run(command, kListingBytesMax);
    if (!ran) {
      if (ran.error().code != Errc::not_found) return ran.error();
      return Error{Errc::unavailable, fmt::format("{} is not installed", tool)};
    }
    if (ran->timed_out) return Error{Errc::unavailable, fmt::format("{} took too long", tool)};
    if (!ran->status.success()) {
      return Error{Errc::unavailable, fmt::format("{} failed: {}", tool, ran->status.to_string())};
    }
    return ran->output + ran->error;
  }

 private:
  BuildRoom& room_;
};

}  // namespace

Result<KernelProfile> profile_kernel(const ProfilerOptions& options, const std::string& source) {
  const BuildRecipe recipe = TRY(options.target->recipe(source));
  BuildRoom room =
      TRY(BuildRoom::create(source, recipe, options.limits, *options.timing_lock));
  RoomTools tools(room);
  return options.target->profile(source, tools);
}

}  // namespace ke
