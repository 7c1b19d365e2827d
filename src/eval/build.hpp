// SPDX-License-Identifier: Apache-2.0
//
// Builds candidate sources in a locked room with the target's recipe. What was built once, or
// failed once, is remembered in the artifacts folder under the digest of the normalised source, the
// command, the toolchain, the policy and this harness.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "domain/limits.hpp"
#include "eval/evaluator.hpp"
#include "eval/library_policy.hpp"
#include "eval/timing_lock.hpp"
#include "os/clock.hpp"
#include "target/target.hpp"

namespace ke {

// Changes whenever a build or a verdict could come out differently for the same source.
inline constexpr std::string_view kHarnessVersion = "1";

// A source without comments (but "// ke:" lines, which mean something) and needless white space.
// Sources that differ only in those build to the same library.
std::string normalized_source(std::string_view source);

struct BuilderOptions {
  const Target* target = nullptr;
  Limits limits;
  LibraryPolicy libraries;
  std::filesystem::path artifacts;  // created when absent
  TimingLock* timing_lock = nullptr;
  os::Clock* clock = nullptr;
};

// Safe to use from many threads.
class Builder {
 public:
  static Result<Builder> create(const BuilderOptions& options);
  Result<Artifact> build(const std::string& source) const;

 private:
  Builder(BuilderOptions options, std::string toolchain)
      : options_(std::move(options)), toolchain_(std::move(toolchain)) {}
  Result<Artifact> build_anew(const std::string& source, const BuildRecipe& recipe,
                              const std::filesystem::path& library) const;

  BuilderOptions options_;
  std::string toolchain_;
};

}  // namespace ke
