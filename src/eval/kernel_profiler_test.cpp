// SPDX-License-Identifier: Apache-2.0
//
// The real tools on real kernels, where they are installed.
#include "eval/kernel_profiler.hpp"

#include <gtest/gtest.h>

#include "os/file_system.hpp"

namespace ke {
namespace {

KernelProfile profile_of(const std::string& source) {
  const std::unique_ptr<Target> target = find_target("x86")->make();
  TimingLock lock(std::filesystem::path{});
  const Result<KernelProfile> profile =
      profile_kernel({.target = target.get(), .timing_lock = &lock}, source);
  EXPECT_TRUE(profile) << profile.error().to_string();
  return profile.value_or(KernelProfile{});
}

std::string kernel(const std::string& body) {
  return "#include <kernelevolve/kernel.h>\n#include <cmath>\nextern \"C\" int ke_launch(const "
         "ke_tensor* in, int32_t, ke_tensor* out, int32_t, ke_context*) {\n  const float* x = "
         "static_cast<const float*>(in[0].data);\n  float* y = "
         "static_cast<float*>(out[0].data);\n" +
         body + "  return 0;\n}\n";
}

TEST(KernelProfiler, TellsVectorLoopsFromScalarOnes) {
  if (!os::find_program("objdump") || !os::find_program("g++")) GTEST_SKIP() << "no tools";
  const KernelProfile vector =
      profile_of(kernel("  for (int i = 0; i < 4096; ++i) y[i] = x[i] * x[i] + 1;\n"));
  ASSERT_TRUE(vector.vector_instructions);
  EXPECT_GT(*vector.vector_instructions, 0);
  EXPECT_EQ(*vector.scalar_instructions, 0);
  EXPECT_FALSE(vector.compiler_remarks.empty());
  const KernelProfile chain = profile_of(kernel(
      "  float s = 0;\n  for (int i = 0; i < 4096; ++i) s = s * 0.5f + x[i];\n  y[0] = s;\n"));
  ASSERT_TRUE(chain.scalar_instructions);
  EXPECT_GT(*chain.scalar_instructions, 0);
  EXPECT_EQ(*chain.vector_instructions, 0);
  // Each metric is there, or says why not.
  for (const KernelProfile& profile : {vector, chain}) {
    EXPECT_NE(profile.cycles_per_iteration.has_value(),
              profile.missing.contains("cycles_per_iteration"));
  }
}

TEST(KernelProfiler, ASourceThatDoesNotBuildHasNoMetrics) {
  const KernelProfile profile = profile_of("this is no C++\n");
  EXPECT_FALSE(profile.spills);
  EXPECT_TRUE(profile.missing.contains("spills"));
}

TEST(KernelProfiler, AsksForNoForbiddenFlag) {
  const std::unique_ptr<Target> target = find_target("x86")->make();
  TimingLock lock(std::filesystem::path{});
  const Result<KernelProfile> refused = profile_kernel(
      {.target = target.get(), .timing_lock = &lock}, "// ke:flags -fplugin=evil.so\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::refused);
}

}  // namespace
}  // namespace ke
