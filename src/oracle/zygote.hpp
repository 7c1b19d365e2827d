// SPDX-License-Identifier: Apache-2.0
//
// The zygote: a Python process that has imported PyTorch and forks oracles, which then need not
// (DESIGN D6). It is started at first use and again when it has ended; oracles do not depend on its
// life. No problem's code ever runs in it, and each oracle moves into a room of its own before any
// does; see py/kernelevolve/zygote.py and docs/decisions/0013-oracles-fork-from-a-zygote.md.
//
// Threads: any thread may call; the process lives no longer than the thread that started it.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "oracle/oracle_process.hpp"
#include "os/file_descriptor.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"

namespace ke::oracle {

class Zygote {
 public:
  // An oracle's process, in a room of its own. Errc::unavailable, and why, where that cannot be
  // had: on this machine or with this interpreter; then start one from the interpreter.
  // `start_max` is for the zygote's own start.
  Result<std::unique_ptr<OracleProcess>> fork(const ProcessRequest& request, Nanoseconds start_max);

  // Why oracles are not forked, as last seen; empty when they are or nobody asked.
  std::string why_not() const;

  // The process, for tests; 0 when there is none.
  pid_t pid() const;

 private:
  struct Running {
    os::Child child;
    os::FileDescriptor socket;
    std::string python;
  };
  Result<void> ensure(const std::string& python, Nanoseconds start_max);
  static Result<Running> start(const std::string& python, Nanoseconds start_max);
  Result<void> send(const ProcessRequest& request, const os::Door& door, int keeper, int error,
                    int news);
  Result<std::unique_ptr<OracleProcess>> try_fork(const ProcessRequest& request,
                                                  Nanoseconds start_max);

  mutable std::mutex mutex_;
  std::optional<Running> running_;
  std::string refused_python_;  // could not be warmed up: not tried again
  std::string why_not_;
};

// Whether it works here: forks an oracle's process and ends it. For `doctor`; cache_dir exists.
Result<void> probe_zygote(const std::string& python, const std::filesystem::path& cache_dir);

}  // namespace ke::oracle
