// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "os/sandbox.hpp"

namespace ke::os {
namespace {

// "pid:[4026531836]"; empty for what has gone or is not ours to see.
std::string process_namespace_of(const std::filesystem::path& process) {
  std::error_code error;
  return std::filesystem::read_symlink(process / "ns/pid", error).string();
}

// Anonymous pages that are resident; 0 for what has gone.
int64_t own_memory_of(pid_t process) {
  std::ifstream lines("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("RssAnon:")) return std::atoll(line.c_str() + 8) * 1024;
  }
  return 0;
}

}  // namespace

std::vector<pid_t> processes_in_room_of(pid_t member) {
  const std::filesystem::path all("/proc");
  const std::string room = process_namespace_of(all / std::to_string(member));
  std::vector<pid_t> found;
  if (room.empty() || room == process_namespace_of(all / "self")) return found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(all, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (process_namespace_of(it->path()) == room) found.push_back(std::stoi(name));
  }
  return found;
}

RoomUse use_of_room(pid_t member) {
  RoomUse use;
  for (const pid_t process : processes_in_room_of(member)) {
    ++use.processes;
    use.memory_bytes += own_memory_of(process);
  }
  return use;
}

void signal_room(pid_t member, int signal) {
  ::kill(-member, signal);
  // Whoever makes processes while it is being stopped is met in the next round.
  std::set<pid_t> told;
  for (bool more = true; more;) {
    more = false;
    for (const pid_t process : processes_in_room_of(member)) {
      if (!told.insert(process).second) continue;
      more = true;
      ::kill(process, signal);
    }
  }
}

}  // namespace ke::os
