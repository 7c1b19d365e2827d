// SPDX-License-Identifier: Apache-2.0
//
// See signalfd(2): one small thread reads the signals that every other thread has blocked.
#include "os/terminal.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/assert.hpp"
#include "os/file_system.hpp"

namespace ke::os {

namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

FileDescriptor make_event() {
  FileDescriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  KE_ASSERT(event.valid());
  return event;
}

void raise_event(int event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event, &one, sizeof one);
}

// Dies of the signal, as if it had never been caught.
void end_process(int signal) {
  ::signal(signal, SIG_DFL);
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  kill(getpid(), signal);
}

}  // namespace

struct StopSignal::Watcher {
  FileDescriptor signals;
  FileDescriptor quit = make_event();
  std::thread thread;

  void watch(StopSignal& owner) const {
    bool asked = false;
    while (true) {
      pollfd waited[2] = {{signals.get(), POLLIN, 0}, {quit.get(), POLLIN, 0}};
      if (poll(waited, 2, -1) < 0) continue;
      if (waited[1].revents != 0) return;
      signalfd_siginfo info{};
      if (read(signals.get(), &info, sizeof info) != sizeof info) continue;
      if (asked) end_process(static_cast<int>(info.ssi_signo));
      asked = true;
      owner.request();
    }
  }
};

bool is_terminal(int fd) { return isatty(fd) == 1; }

std::optional<int> terminal_width(int fd) {
  winsize size{};
  if (!is_terminal(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return size.ws_col;
}

Result<std::unique_ptr<StopSignal>> StopSignal::install() {
  std::unique_ptr<StopSignal> stop = fake();
  stop->watcher_ = std::make_unique<Watcher>();
  const sigset_t set = stop_signals();
  stop->watcher_->signals = FileDescriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!stop->watcher_->signals.valid()) return system_error(errno, "watch for signals");
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  StopSignal* owner = stop.get();
  stop->watcher_->thread = std::thread([owner] { owner->watcher_->watch(*owner); });
  return stop;
}

std::unique_ptr<StopSignal> StopSignal::fake() {
  std::unique_ptr<StopSignal> stop(new StopSignal);
  stop->event_ = make_event();
  return stop;
}

StopSignal::~StopSignal() {
  if (watcher_ == nullptr || !watcher_->thread.joinable()) return;
  raise_event(watcher_->quit.get());
  watcher_->thread.join();
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool StopSignal::requested() const { return requested_.load(std::memory_order_relaxed); }

void StopSignal::request() {
  requested_.store(true);
  raise_event(event_.get());
}

}  // namespace ke::os
