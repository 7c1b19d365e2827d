// SPDX-License-Identifier: Apache-2.0
//
// Targets whose compiler is part of this program build in the locked room as any other does. Has a
// main of its own, because it is that program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "eval/build.hpp"
#include "eval/kernel_profiler.hpp"
#include "os/clock.hpp"
#include "os/file_system.hpp"
#include "target/device_package.hpp"

namespace ke {
namespace {

constexpr std::string_view kLine = "// ke:launch twice grid=(1) block=(64) args=(in0, out0)\n";
constexpr std::string_view kKernel =
    "extern \"C\" __global__ void twice(const float* x, float* y) {\n"
    "  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n";

class Bench {
 public:
  explicit Bench(const Target& target)
      : target_(target),
        builder_(*Builder::create({&target, {}, {}, folder_.path(), &lock_, &clock_})) {}

  Artifact build(const std::string& source) const {
    const Result<Artifact> artifact = builder_.build(source);
    EXPECT_TRUE(artifact) << artifact.error().to_string();
    return artifact.value_or(Artifact{});
  }
  // "verdict: detail"
  std::string failure_of(const std::string& source) const {
    const Artifact artifact = build(source);
    if (!artifact.failure) return "built";
    return fmt::format("{}: {}", enum_name(artifact.failure->verdict), artifact.failure->detail);
  }
  Result<KernelProfile> profile(const std::string& source) {
    return profile_kernel({&target_, {}, &lock_}, source);
  }

 private:
  const os::TemporaryDirectory folder_ = *os::TemporaryDirectory::create();
  os::SystemClock clock_;
  TimingLock lock_{std::filesystem::path()};
  const Target& target_;
  Builder builder_;
};

class DeviceBuild : public testing::Test {
 protected:
  void SetUp() override {
    for (const TargetInfo* info : all_targets()) {
      if (info->compile != nullptr) target_ = info->make();
    }
    ASSERT_NE(target_, nullptr);
    if (const auto tools = target_->toolchain(); !tools) GTEST_SKIP() << tools.error().message;
    bench_ = std::make_unique<Bench>(*target_);
  }
  std::unique_ptr<Target> target_;
  std::unique_ptr<Bench> bench_;
};

TEST_F(DeviceBuild, MakesAPackageOfCodeAndLaunchLines) {
  const Artifact artifact = bench_->build(std::string(kLine) + std::string(kKernel));
  ASSERT_FALSE(artifact.failure) << artifact.failure->detail << artifact.failure->diagnostics;
  const auto package = target::decode_package(*os::read_file(artifact.built_path, 1 << 24));
  ASSERT_TRUE(package) << package.error().to_string();
  EXPECT_EQ(package->launch_lines, kLine);
  ASSERT_EQ(package->resources.size(), 1u);
  EXPECT_EQ(package->resources[0].kernel, "twice");
  EXPECT_GT(package->resources[0].registers, 0);
  EXPECT_EQ(package->resources[0].spill_bytes, 0);
}

TEST_F(DeviceBuild, SaysWhyASourceIsRefused) {
  const std::string line(kLine), kernel(kKernel);
  EXPECT_EQ(bench_->failure_of(line + "extern \"C\" __global__ void twice(float* x) { x[0] = y; }"),
            "compile_error: it does not compile: kernel.cu(2): error: identifier \"y\" is "
            "undefined");
  EXPECT_EQ(bench_->failure_of(kernel),
            "compile_error: it does not compile: error: the source has no `// ke:launch NAME "
            "grid=(…) block=(…) args=(…)` line, so nothing would be launched");
  EXPECT_EQ(bench_->failure_of("// ke:launch thrice grid=(1) block=(1) args=()\n" + kernel),
            "compile_error: it does not compile: error: a ke:launch line launches thrice, but the "
            "source defines no extern \"C\" __global__ void thrice(…)");
  EXPECT_EQ(bench_->failure_of("// ke:flags --include-path=/etc\n" + line + kernel),
            "policy_violation: the flag --include-path=/etc is not among those a source may ask "
            "for");
  EXPECT_EQ(bench_->failure_of(line + "#include <stdio.h>\n" + kernel).substr(0, 13),
            "compile_error");
}

TEST_F(DeviceBuild, ProfilesWhatTheAssemblerSays) {
  const auto profile = bench_->profile(std::string(kLine) + std::string(kKernel));
  ASSERT_TRUE(profile) << profile.error().to_string();
  ASSERT_EQ(profile->compiler_remarks.size(), 1u);
  EXPECT_TRUE(profile->compiler_remarks[0].starts_with("twice: "));
  EXPECT_EQ(profile->spills, 0);
}

}  // namespace
}  // namespace ke

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], ke::kCompileCommand) == 0) {
    return ke::find_target(argv[2])->compile(std::vector<std::string>(argv + 3, argv + argc));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
