// SPDX-License-Identifier: Apache-2.0
//
// The launcher in its room, with the driver played on the processor (tests/device). What only a
// device can show is not shown here.
#include <gtest/gtest.h>

#include <cstring>

#include "eval/launcher/child.hpp"
#include "eval/launcher/client.hpp"
#include "os/cuda_memory.hpp"
#include "os/file_system.hpp"

namespace ke::launcher {
namespace {

using os::cuda::Access;
using os::cuda::Allocation;
using os::cuda::Mapping;
using target::LaunchArgument;
using Kind = LaunchArgument::Kind;

constexpr int64_t kElements = 1000;
constexpr Nanoseconds kLong = std::chrono::seconds(30);

// Memory of the judge's side, seen by it and exported.
struct Memory {
  explicit Memory(const os::cuda::Driver& driver)
      : allocation(*Allocation::create(driver, 0, kElements * 4, true)),
        mapping(*Mapping::make(allocation, Access::read_write)),
        descriptor(*allocation.export_descriptor()) {}
  float* data() const { return reinterpret_cast<float*>(mapping.address()); }
  DeviceTensor tensor() const { return {descriptor.get(), 0, allocation.bytes()}; }

  Allocation allocation;
  Mapping mapping;
  os::FileDescriptor descriptor;
};

class Launching : public ::testing::Test {
 protected:
  void SetUp() override {
    driver_ = *os::cuda::Driver::load(KE_FAKE_CUDA);
    code_ = *os::read_file(KE_FAKE_KERNELS, 16 << 20);
    in_.emplace(*driver_);
    out_.emplace(*driver_);
    for (int64_t i = 0; i < kElements; ++i) in_->data()[i] = static_cast<float>(i);
    launcher_ = start();
  }

  std::unique_ptr<Launcher> start() {
    const std::string self = *os::own_executable();
    auto launcher = Launcher::start({.command = {self, "launch", KE_FAKE_CUDA},
                                     .clock = &clock_,
                                     .driver = KE_FAKE_CUDA});
    EXPECT_TRUE(launcher) << launcher.error().to_string();
    return std::move(*launcher);
  }

  static target::LaunchPlan plan(std::string kernel, std::vector<LaunchArgument> arguments) {
    target::Launch launch;
    launch.kernel = std::move(kernel);
    launch.grid = {4, 1, 1};
    launch.block = {256, 1, 1};
    launch.arguments = std::move(arguments);
    return {.scratch_bytes = 4096, .launches = {launch}};
  }
  static target::LaunchPlan scaling(int64_t factor) {
    return plan(
        "scale",
        {{Kind::input, 0}, {Kind::output, 0}, {Kind::integer, factor}, {Kind::integer, kElements}});
  }

  Outcome bind(bool inputs_writable = false, int64_t slot = 0) {
    const DeviceTensor in[] = {in_->tensor()}, out[] = {out_->tensor()};
    return *launcher_->bind(slot, in, out, inputs_writable);
  }
  // Of the plan on slot 0.
  Outcome launch(const target::LaunchPlan& plan, RunOptions options = {},
                 Nanoseconds timeout = kLong) {
    const Outcome loaded = *launcher_->load(code_, plan);
    if (failure_of(loaded)) return loaded;
    const int64_t slots[] = {0};
    return *launcher_->run(slots, options, timeout);
  }

  os::SystemClock clock_;
  std::unique_ptr<os::cuda::Driver> driver_;
  std::string code_;
  std::optional<Memory> in_, out_;
  std::unique_ptr<Launcher> launcher_;
};

TEST_F(Launching, WritesOutputsThatTheJudgeSees) {
  ASSERT_FALSE(failure_of(bind()));
  const Outcome outcome = launch(scaling(3));
  ASSERT_FALSE(failure_of(outcome)) << failure_of(outcome)->detail;
  EXPECT_EQ(std::get<0>(outcome).size(), 1u);
  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(out_->data()[i], 3.0F * static_cast<float>(i)) << i;
  }
}

TEST_F(Launching, AGraphDoesTheSame) {
  ASSERT_FALSE(failure_of(bind()));
  const Outcome outcome = launch(scaling(5), {.mode = LaunchMode::graph});
  ASSERT_FALSE(failure_of(outcome)) << failure_of(outcome)->detail;
  EXPECT_EQ(out_->data()[10], 50.0F);
}

TEST_F(Launching, AnotherPlanReplacesTheOneBefore) {
  ASSERT_FALSE(failure_of(bind()));
  ASSERT_FALSE(failure_of(launch(scaling(5), {.mode = LaunchMode::graph})));
  ASSERT_FALSE(failure_of(launch(scaling(7), {.mode = LaunchMode::graph})));
  EXPECT_EQ(out_->data()[10], 70.0F) << "the graph of an earlier plan was replayed";
}

TEST_F(Launching, WithFlushedCachesEveryCallIsTimed) {
  ASSERT_FALSE(failure_of(bind()));
  ASSERT_FALSE(failure_of(bind(false, 1)));
  ASSERT_FALSE(failure_of(*launcher_->load(code_, scaling(2))));
  const int64_t slots[] = {0, 1, 0};
  const Outcome outcome = *launcher_->run(slots, {.flush_bytes = 1 << 20}, kLong);
  ASSERT_FALSE(failure_of(outcome)) << failure_of(outcome)->detail;
  const std::vector<int64_t>& times = std::get<0>(outcome);
  ASSERT_EQ(times.size(), 3u);
  for (const int64_t ns : times) EXPECT_GT(ns, 0);
}

TEST_F(Launching, AnInputCannotBeWritten) {
  ASSERT_FALSE(failure_of(bind()));
  const Outcome outcome = launch(plan("write_input", {{Kind::input, 0}}));
  ASSERT_TRUE(failure_of(outcome));
  EXPECT_TRUE(failure_of(outcome)->illegal_address);
  EXPECT_FALSE(launcher_->alive());
  EXPECT_EQ(in_->data()[0], 0.0F);
  // With inputs that may be written the same launch goes through: that was its fault.
  launcher_ = start();
  ASSERT_FALSE(failure_of(bind(true)));
  EXPECT_FALSE(failure_of(launch(plan("write_input", {{Kind::input, 0}}))));
}

TEST_F(Launching, NothingLiesBesideATensor) {
  const int64_t bytes = out_->allocation.bytes();
  for (const int64_t offset : {int64_t{-1}, bytes, bytes + (1 << 15), -(int64_t{1} << 15)}) {
    ASSERT_FALSE(failure_of(bind(true)));
    const auto touching = [&](int64_t at) {
      return launch(plan("touch", {{Kind::output, 0}, {Kind::integer, at}}));
    };
    ASSERT_FALSE(failure_of(touching(bytes - 1)));
    const Outcome outcome = touching(offset);
    ASSERT_TRUE(failure_of(outcome)) << offset;
    EXPECT_EQ(failure_of(outcome)->verdict, Verdict::out_of_bounds);
    launcher_ = start();
  }
}

TEST_F(Launching, ScratchMemoryHasItsSize) {
  ASSERT_FALSE(failure_of(bind()));
  const auto touching = [&](int64_t at) {
    return launch(plan("touch", {{Kind::scratch, 64}, {Kind::integer, at}}));
  };
  ASSERT_FALSE(failure_of(touching(0)));
  EXPECT_TRUE(failure_of(touching(64 << 10)));
}

TEST_F(Launching, WhatHangsIsTimedOut) {
  ASSERT_FALSE(failure_of(bind()));
  const Outcome outcome =
      launch(plan("hang", {{Kind::input, 0}}), {}, std::chrono::milliseconds(200));
  ASSERT_TRUE(failure_of(outcome));
  EXPECT_EQ(failure_of(outcome)->verdict, Verdict::timed_out);
  EXPECT_FALSE(launcher_->alive());
}

TEST_F(Launching, CodeAndNamesThatAreNoneAreCompileErrors) {
  ASSERT_FALSE(failure_of(bind()));
  const Outcome missing = launch(plan("nobody", {}));
  ASSERT_TRUE(failure_of(missing));
  EXPECT_EQ(failure_of(missing)->verdict, Verdict::compile_error);
  EXPECT_NE(failure_of(missing)->detail.find("nobody"), std::string::npos);
  launcher_ = start();
  code_ = "no code at all";
  const Outcome bad = launch(scaling(1));
  ASSERT_TRUE(failure_of(bad));
  EXPECT_EQ(failure_of(bad)->verdict, Verdict::compile_error);
}

TEST_F(Launching, ALaunchBeyondTheDeviceIsRefused) {
  ASSERT_FALSE(failure_of(bind()));
  target::LaunchPlan plan = scaling(1);
  plan.launches[0].block = {2048, 1, 1};
  const Outcome outcome = launch(plan);
  ASSERT_TRUE(failure_of(outcome));
  EXPECT_EQ(failure_of(outcome)->verdict, Verdict::crashed);
}

TEST_F(Launching, ParametersThatNobodyHandsOverAreZero) {
  ASSERT_FALSE(failure_of(bind()));
  ASSERT_FALSE(failure_of(launch(scaling(3))));
  const Outcome outcome = launch(plan("scale", {{Kind::input, 0}, {Kind::output, 0}}));
  ASSERT_FALSE(failure_of(outcome)) << failure_of(outcome)->detail;
  EXPECT_EQ(out_->data()[10], 30.0F) << "the number of elements was not zero";
}

TEST_F(Launching, SaysThatThereIsNoDriver) {
  const auto launcher = Launcher::start(
      {.command = {*os::own_executable(), "launch", "libno-such-driver.so"}, .clock = &clock_});
  ASSERT_FALSE(launcher);
  EXPECT_EQ(launcher.error().code, Errc::unavailable);
  EXPECT_NE(launcher.error().to_string().find("no NVIDIA driver"), std::string::npos);
}

TEST(CudaMemory, SaysHowMuchIsMissing) {
  const auto driver = os::cuda::Driver::load(KE_FAKE_CUDA);
  ASSERT_TRUE(driver) << driver.error().to_string();
  const auto memory = Allocation::create(**driver, 0, int64_t{8} << 30, true);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Errc::unavailable);
  EXPECT_NE(memory.error().message.find("8192 MiB more are needed"), std::string::npos);
}

TEST(CudaDriver, DescribesItsDevices) {
  const auto driver = os::cuda::Driver::load(KE_FAKE_CUDA);
  ASSERT_TRUE(driver) << driver.error().to_string();
  ASSERT_EQ((*driver)->devices().size(), 1u);
  const os::cuda::DeviceInfo& device = (*driver)->devices()[0];
  EXPECT_EQ(device.capability, 90);
  EXPECT_EQ(device.shared_per_block_max, 227 << 10);
  EXPECT_TRUE(device.exports_descriptors);
}

}  // namespace
}  // namespace ke::launcher

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "launch") == 0) return ke::launcher::child_main(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
