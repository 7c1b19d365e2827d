// SPDX-License-Identifier: Apache-2.0
//
// What a room costs beside a plain fork, in microseconds from clone to reaped. Interleaved, so that
// a busy machine slows all rows alike.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "os/clock.hpp"
#include "os/sandbox.hpp"

namespace ke::os {
namespace {

constexpr int kRounds = 101;

Room make_room(SystemCalls calls, bool network, bool limits) {
  RoomOptions options;
  options.paths = toolchain_paths();
  options.system_calls = calls;
  options.network = network;
  if (limits) options.memory_bytes = int64_t{4} << 30;
  if (limits) options.processes_max = 64;
  return Room::prepare(options).value();
}

void enter(const Room& room) {
  CloneOptions options;
  options.entry = [](void*) { return 0; };
  Child child = clone_into_room(room, options).value();
  child.wait(std::chrono::seconds(60)).value();
}

void start_program(const Room* room) {
  ProcessOptions options;
  options.argv = {"/bin/true"};
  options.room = room;
  Child child = spawn(options).value();
  child.wait(std::chrono::seconds(60)).value();
}

void fork_once() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
}

int measure() {
  const Room plain = make_room(SystemCalls::run, false, false);
  const Room with_network = make_room(SystemCalls::run, true, false);
  const Room limited = make_room(SystemCalls::run, false, true);
  const Room build = make_room(SystemCalls::build, false, true);
  struct Row {
    const char* name;
    std::function<void()> work;
    std::vector<int64_t> times;
  };
  std::vector<Row> rows = {{"fork", fork_once, {}},
                           {"room", [&] { enter(plain); }, {}},
                           {"room, host's network", [&] { enter(with_network); }, {}},
                           {"room, cgroups", [&] { enter(limited); }, {}},
                           {"program", [] { start_program(nullptr); }, {}},
                           {"program in build room", [&] { start_program(&build); }, {}}};
  SystemClock clock;
  for (int round = 0; round < kRounds; ++round) {
    for (Row& row : rows) {
      const Nanoseconds start = clock.now();
      row.work();
      row.times.push_back((clock.now() - start).count() / 1000);
    }
  }
  for (Row& row : rows) {
    std::sort(row.times.begin(), row.times.end());
    std::printf("%-24s min %6ld  median %6ld  p90 %6ld\n", row.name,
                static_cast<long>(row.times.front()), static_cast<long>(row.times[kRounds / 2]),
                static_cast<long>(row.times[kRounds * 9 / 10]));
  }
  return 0;
}

}  // namespace
}  // namespace ke::os

int main() { return ke::os::measure(); }
