// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

#include "os/file_system.hpp"
#include "os/terminal.hpp"

namespace ke::os {
namespace {

using namespace std::chrono_literals;

RunOptions shell(const std::string& script) {
  RunOptions options;
  options.process.argv = {"/bin/sh", "-c", script};
  options.process.environment = minimal_environment();
  options.time_max = 20s;
  return options;
}

RunResult run_shell(const std::string& script) { return run(shell(script)).value(); }

TEST(Run, CapturesBothStreamsAndTheExitCode) {
  const RunResult result = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error, "err\n");
  EXPECT_EQ(result.status.code, 3);
  EXPECT_EQ(result.status.to_string(), "exit code 3");
  EXPECT_FALSE(result.status.success());
}

TEST(Run, ASignalIsData) {
  const RunResult result = run_shell("kill -SEGV $$");
  EXPECT_EQ(result.status.signal, SIGSEGV);
  EXPECT_EQ(result.status.to_string(), "signal 11 (Segmentation fault)");
}

TEST(Run, FeedsInputThatIsLargerThanAPipe) {
  RunOptions options = shell("wc -c");
  options.input.assign(1 << 20, 'x');
  EXPECT_EQ(run(options).value().output, "1048576\n");
  options = shell("exit 0");  // a child that does not read must not end us
  options.input.assign(1 << 20, 'x');
  EXPECT_TRUE(run(options).value().status.success());
}

TEST(Run, CutsEndlessOutputButLetsTheChildFinish) {
  RunOptions options = shell("yes | head -c 3000000; exit 5");
  options.output_bytes_max = 1000;
  const RunResult result = run(options).value();
  EXPECT_EQ(result.output.size(), 1000U);
  EXPECT_TRUE(result.output_cut);
  EXPECT_EQ(result.status.code, 5);
}

TEST(Run, AMissingProgramIsAnError) {
  RunOptions options;
  options.process.argv = {"no-such-program"};
  EXPECT_EQ(run(options).error().code, Errc::not_found);
  options.process.argv = {"/bin/sh", "-c", "true"};
  options.process.working_directory = "/no/such/folder";
  EXPECT_EQ(run(options).error().message,
            "cannot start /bin/sh in /no/such/folder: it does not exist");
}

TEST(Run, PassesNoEnvironmentThatWasNotAsked) {
  ASSERT_EQ(setenv("KE_TEST_SECRET", "secret", 1), 0);
  const RunResult result = run_shell("env");
  EXPECT_EQ(result.output.find("secret"), std::string::npos);
  EXPECT_NE(result.output.find("HOME=/tmp"), std::string::npos);
}

TEST(Run, EndsAChildThatIgnoresEverySignal) {
  RunOptions options = shell("trap '' TERM INT HUP; while true; do :; done");
  options.time_max = 50ms;
  const RunResult result = run(options).value();
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status.signal, SIGKILL);
}

TEST(Run, TakesTheWholeGroupAlong) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  RunOptions options = shell("sleep 1000 & sleep 1000");
  options.process.descriptors = {{write_end.get(), 5}};
  options.time_max = 100ms;
  EXPECT_TRUE(run(options).value().timed_out);
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // ends only when the background job is gone too
}

TEST(Run, DoesNotWaitForABackgroundJobThatHoldsThePipe) {
  const RunResult result = run_shell("setsid sleep 3 & echo done");
  EXPECT_EQ(result.output, "done\n");
  EXPECT_LT(result.wall_time, 2s);
}

TEST(Run, StopsWhenAsked) {
  const std::unique_ptr<StopSignal> stop = StopSignal::fake();
  stop->request();
  RunOptions options = shell("sleep 1000");
  options.stop_fd = stop->fd();
  const RunResult result = run(options).value();
  EXPECT_TRUE(result.stopped);
  EXPECT_FALSE(result.timed_out);
}

TEST(Run, HandsOverOutputAsItComesAndStopsWhenTheReceiverSaysSo) {
  RunOptions options = shell("echo first; echo second; exec sleep 1000");
  std::string heard;
  options.on_output = [&](std::string_view piece) {
    heard += piece;
    return heard.find("second") == std::string::npos;
  };
  const RunResult result = run(options).value();
  EXPECT_EQ(heard, "first\nsecond\n");
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.status.signal, SIGKILL);
}

TEST(Run, HandsOverOutputThatCameRightBeforeTheEnd) {
  RunOptions options = shell("echo last words");
  std::string heard;
  options.on_output = [&](std::string_view piece) {
    heard += piece;
    return true;
  };
  EXPECT_FALSE(run(options).value().stopped);
  EXPECT_EQ(heard, "last words\n");
}

TEST(Run, TellsWhoeverFreezesGroups) {
  pid_t started = 0, ended = 0;
  RunOptions options = shell("echo $$");
  options.started = [&](pid_t group) { started = group; };
  options.ending = [&](pid_t group) {
    ended = group;
    EXPECT_EQ(::kill(-group, 0), 0);  // still there: not reaped
  };
  const RunResult result = run(options).value();
  EXPECT_EQ(result.output, std::to_string(started) + "\n");
  EXPECT_EQ(ended, started);
}

TEST(Run, MeasuresTimeAndMemory) {
  const RunResult result = run_shell("head -c 20000000 /dev/zero | tail -c 20000000 | wc -c");
  EXPECT_GT(result.status.cpu_time, 0ns);
  EXPECT_GT(result.status.peak_memory_bytes, 1 << 20);
  EXPECT_GT(result.wall_time, 0ns);
}

TEST(Run, EnforcesResourceLimits) {
  RunOptions options = shell("head -c 100000 /dev/zero > big; echo $?; ulimit -c; ulimit -n");
  const TemporaryDirectory folder = TemporaryDirectory::create().value();
  options.process.working_directory = folder.path().string();
  options.process.limits.file_size_bytes = 4096;
  options.process.limits.open_files = 20;
  const RunResult result = run(options).value();
  EXPECT_NE(result.output.substr(0, 2), "0\n");
  EXPECT_NE(result.output.find("\n0\n20\n"), std::string::npos) << result.output;
  EXPECT_LE(std::filesystem::file_size(folder.path() / "big"), 4096U);

  options = shell("ulimit -t; ulimit -d");
  options.process.limits.cpu_seconds = 7;
  options.process.limits.data_bytes = 64 << 20;
  EXPECT_EQ(run(options).value().output, "7\n65536\n");
}

TEST(Run, LimitsTheProcessors) {
  RunOptions options = shell("nproc; sh -c nproc");  // its own children too
  options.process.limits.processors = 1;
  EXPECT_EQ(run(options).value().output, "1\n1\n");
  options = shell("nproc");
  const std::string all = run(options).value().output;
  options.process.limits.processors = 4096;
  EXPECT_EQ(run(options).value().output, all);
}

TEST(Spawn, ChildInheritsOnlyListedDescriptors) {
  const FileDescriptor secret(memfd_create("secret", 0));  // not even close-on-exec
  const FileDescriptor given(memfd_create("given", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(given.get(), "payload", 7, 0), 7);
  RunOptions options = shell("ls /proc/self/fd | tr '\\n' ' '; cat /proc/self/fd/7");
  options.process.descriptors = {{given.get(), 7}};
  const RunResult result = run(options).value();
  EXPECT_EQ(result.output, "0 1 2 3 7 payload");  // 3 is ls reading the folder
}

TEST(Spawn, SwapsDescriptorsThatStandInEachOthersPlace) {
  const FileDescriptor a(memfd_create("a", MFD_CLOEXEC)), b(memfd_create("b", MFD_CLOEXEC));
  ASSERT_EQ(pwrite(a.get(), "A", 1, 0), 1);
  ASSERT_EQ(pwrite(b.get(), "B", 1, 0), 1);
  const std::string first = std::to_string(a.get()), second = std::to_string(b.get());
  RunOptions options = shell("cat /proc/self/fd/" + first + " /proc/self/fd/" + second);
  options.process.descriptors = {{a.get(), b.get()}, {b.get(), a.get()}};
  EXPECT_EQ(run(options).value().output, "BA");
  options.process.descriptors = {{a.get(), 9}, {b.get(), 9}};
  EXPECT_EQ(run(options).error().code, Errc::invalid);
}

TEST(Spawn, TalksThroughPipes) {
  ProcessOptions options;
  options.argv = {"cat"};
  options.input = Stream::pipe;
  options.output = Stream::pipe;
  Child child = spawn(options).value();
  ASSERT_EQ(write(child.input(), "ping", 4), 4);
  char text[8];
  EXPECT_EQ(::read(child.output(), text, sizeof text), 4);
  EXPECT_FALSE(child.wait(0ns).value().has_value());
  child.take_input().reset();
  const std::optional<ExitStatus> status = child.wait(10s).value();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->success());
  EXPECT_TRUE(child.wait(0ns).value()->success());  // the same again
  EXPECT_FALSE(child.signal_group(SIGTERM));
}

TEST(Spawn, StopsContinuesAndKills) {
  ProcessOptions options;
  options.argv = {"sleep", "1000"};
  Child child = spawn(options).value();
  EXPECT_TRUE(child.signal_group(SIGSTOP));
  EXPECT_FALSE(child.wait(1ms).value().has_value());
  EXPECT_EQ(child.kill().signal, SIGKILL);
  EXPECT_EQ(child.kill().signal, SIGKILL);
}

TEST(Spawn, AChildDoesNotOutliveItsObject) {
  pid_t pid = -1;
  {
    ProcessOptions options;
    options.argv = {"sleep", "1000"};
    Child child = spawn(options).value();
    const Child moved = std::move(child);
    pid = moved.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(Spawn, AChildDiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t parent = fork();
  if (parent == 0) {
    ProcessOptions options;
    options.argv = {"sleep", "1000"};
    options.descriptors = {{write_end.get(), 3}};
    const Child child = spawn(options).value();
    ::kill(getpid(), SIGKILL);
  }
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 0);  // ends only when the grandchild is gone too
}

}  // namespace
}  // namespace ke::os
