// SPDX-License-Identifier: Apache-2.0
//
// Internal to os/: makes one child process. Everything is prepared here by the parent; between
// clone and exec the child runs async-signal-safe code alone.
#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

#include "os/process.hpp"
#include "os/sandbox.hpp"

namespace ke::os {

struct StartOptions {
  // A program, when path is not empty, else a function to call.
  std::string path;
  std::vector<std::string> argv, environment;
  int (*entry)(void*) = nullptr;
  void* argument = nullptr;

  std::string working_directory;
  int standard[3] = {-1, -1, -1};  // becomes 0, 1, 2; -1: /dev/null
  std::vector<InheritedDescriptor> descriptors;
  ResourceLimits limits;
  const Room* room = nullptr;
};

Result<Child> start_child(const StartOptions& options);

// Builds Child objects from the inside.
struct ChildAccess {
  static Child make(pid_t pid, FileDescriptor pidfd, std::vector<std::string> cgroups);
  static void set_report(Child& child, RoomReport report);
  static void set_pipes(Child& child, FileDescriptor input, FileDescriptor output,
                        FileDescriptor error);
};

}  // namespace ke::os
