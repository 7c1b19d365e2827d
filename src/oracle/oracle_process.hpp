// SPDX-License-Identifier: Apache-2.0
//
// An oracle's process, however it came to be: started from the interpreter, or forked by a zygote
// (zygote.hpp). It leads a process group; when it ends, so does everything in its room. The
// destructor kills it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/process.hpp"
#include "os/sandbox.hpp"

namespace ke::oracle {

struct ProcessRequest {
  std::string python;
  const os::Room* room = nullptr;
  int judge = -1, compile = -1;  // the oracle's ends of its sockets
  std::vector<std::string> environment;
  int64_t memory_bytes = 0;
  int32_t threads = 1;
  // What it is to be: an oracle, or the process of a candidate (model_process.hpp), which has one
  // socket, `judge`, and the driver's library.
  std::string role = "oracle";
  std::string driver = {};
};

class OracleProcess {
 public:
  virtual ~OracleProcess() = default;

  // As os::Child: absent while it runs. How it ended is known by code and signal alone.
  virtual Result<std::optional<os::ExitStatus>> wait(Nanoseconds timeout) = 0;
  virtual void signal_group(int signal) = 0;
  // To all of its room, for code that would leave its group.
  virtual void signal_room(int signal) = 0;
  virtual os::RoomUse room_use() const = 0;
  virtual void kill() = 0;        // with its whole room; returns when it has gone
  virtual int error() const = 0;  // what it wrote to standard error
  virtual std::string protections() const = 0;  // what its room enforces
};

class StartedProcess final : public OracleProcess {
 public:
  explicit StartedProcess(os::Child child) : child_(std::move(child)) {}
  Result<std::optional<os::ExitStatus>> wait(Nanoseconds timeout) override {
    return child_.wait(timeout);
  }
  void signal_group(int signal) override { (void)child_.signal_group(signal); }
  void signal_room(int signal) override {
    if (child_.signal_group(signal)) os::signal_room(child_.pid(), signal);
  }
  os::RoomUse room_use() const override { return os::use_of_room(child_.pid()); }
  void kill() override { (void)child_.kill(); }
  int error() const override { return child_.error(); }
  std::string protections() const override { return child_.report().protections(); }

 private:
  os::Child child_;
};

}  // namespace ke::oracle
