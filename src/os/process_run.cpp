// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include "os/file_system.hpp"
#include "os/pipe_signal.hpp"
#include "os/process.hpp"

namespace ke::os {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

void set_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Moves bytes between one running child and memory until the child has ended, the time is over or
// somebody wants to stop.
class Conversation {
 public:
  Conversation(Child& child, const RunOptions& options, RunResult& result)
      : child_(child),
        options_(options),
        result_(result),
        input_(child.take_input()),
        output_(child.take_output()),
        error_(child.take_error()) {
    for (const FileDescriptor* fd : {&input_, &output_, &error_}) set_non_blocking(fd->get());
    if (options.input.empty()) input_.reset();
  }

  Result<void> hold(SteadyTime deadline) {
    while (true) {
      const Nanoseconds left = deadline - std::chrono::steady_clock::now();
      if (left.count() <= 0) {
        result_.timed_out = true;
        return {};
      }
      pollfd waited[5] = {{child_.pidfd(), POLLIN, 0},
                          {options_.stop_fd, POLLIN, 0},
                          {input_.get(), POLLOUT, 0},
                          {output_.get(), POLLIN, 0},
                          {error_.get(), POLLIN, 0}};  // negative numbers are passed over
      const timespec time{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
      if (::ppoll(waited, 5, &time, nullptr) < 0) {
        if (errno == EINTR) continue;
        return system_error(errno, "wait for a child process");
      }
      if (waited[2].revents != 0) feed();
      if (waited[3].revents != 0) drain(output_, result_.output, true);
      if (waited[4].revents != 0) drain(error_, result_.error);
      if (waited[1].revents != 0) result_.stopped = true;
      if (result_.stopped) return {};
      if (waited[0].revents != 0) return {};
    }
  }

  // What the ended child left in the pipes. Does not wait: somebody outside the group may still
  // hold them open.
  void finish() {
    drain(output_, result_.output, !result_.stopped);
    drain(error_, result_.error);
  }

 private:
  void feed() {
    const ssize_t count =
        ::write(input_.get(), options_.input.data() + fed_, options_.input.size() - fed_);
    if (count > 0) fed_ += static_cast<size_t>(count);
    const bool gone = count < 0 && errno != EAGAIN && errno != EINTR;
    if (gone || fed_ == options_.input.size()) input_.reset();
  }

  void drain(FileDescriptor& fd, std::string& text, bool tell = false) {
    char buffer[1 << 16];
    while (fd.valid()) {
      const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) {
        fd.reset();
        return;
      }
      const int64_t room = options_.output_bytes_max - static_cast<int64_t>(text.size());
      if (count > room) result_.output_cut = true;
      const size_t kept = static_cast<size_t>(std::min<int64_t>(room, count));
      text.append(buffer, kept);
      if (!tell || !options_.on_output || kept == 0) continue;
      if (!options_.on_output({buffer, kept})) {
        result_.stopped = true;
        return;
      }
    }
  }

  Child& child_;
  const RunOptions& options_;
  RunResult& result_;
  FileDescriptor input_, output_, error_;
  size_t fed_ = 0;
};

}  // namespace

Result<RunResult> run(const RunOptions& options) {
  const PipeSignalBlocked blocked;  // a child may have closed its input
  const SteadyTime start = std::chrono::steady_clock::now();
  ProcessOptions process = options.process;
  process.input = options.input.empty() ? Stream::null : Stream::pipe;
  process.output = Stream::pipe;
  process.error = Stream::pipe;
  Child child = TRY(spawn(process));
  if (options.started) options.started(child.pid());
  RunResult result;
  Conversation conversation(child, options, result);
  const Result<void> held = conversation.hold(start + options.time_max);
  if (options.ending) options.ending(child.pid());
  result.status = child.kill();  // ended or not: nobody of the group stays
  conversation.finish();
  if (!held) return held.error();
  result.wall_time = std::chrono::steady_clock::now() - start;
  result.report = child.report();
  return result;
}

}  // namespace ke::os
