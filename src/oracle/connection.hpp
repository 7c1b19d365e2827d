// SPDX-License-Identifier: Apache-2.0
//
// Requests and answers as JSON lines with descriptors, and who is to blame when no answer comes.
// The schema is described in py/kernelevolve/oracle.py and channel.py.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.hpp"
#include "base/result.hpp"
#include "oracle/oracle_process.hpp"
#include "os/file_descriptor.hpp"
#include "os/socket.hpp"

namespace ke::oracle {

// What an answer brought besides its JSON, in the order the oracle sent it.
using Descriptors = std::vector<os::FileDescriptor>;

// What a sentence about a failure needs to know.
struct Blame {
  std::string problem_path;
  std::string python;
  int64_t memory_bytes = 0;
};

// One socket to one Python process. After an Errc that is not the oracle's own answer (time limit,
// end of the process) the connection is dead and says so from then on.
class Connection {
 public:
  // `process` is the one whose end ends the connection, waited for or killed when needed; null
  // when somebody else looks after it.
  Connection(os::FileDescriptor socket, OracleProcess* process, Blame blame);

  Result<void> send(const Json& request);
  // The value of "ok". An {"error"} answer is returned as that Error.
  Result<Json> receive(Descriptors& descriptors, Nanoseconds timeout);
  Result<Json> receive(Nanoseconds timeout);
  Result<Json> ask(const Json& request, Nanoseconds timeout);

  bool answer_ready() const;  // without waiting

  // Rings the bell of a prepared batch and waits until it has run.
  Result<void> ring(Nanoseconds timeout);

 private:
  Result<Json> answer_line(Descriptors& descriptors, Nanoseconds timeout);
  Error ended();
  Error late(Nanoseconds timeout);

  os::FileDescriptor socket_;
  os::LineReader reader_;
  OracleProcess* process_;
  Blame blame_;
  std::string stage_;  // what of the problem is running, as the oracle told us; empty: none
  bool dead_ = false;
};

}  // namespace ke::oracle
