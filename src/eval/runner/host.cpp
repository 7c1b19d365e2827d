// SPDX-License-Identifier: Apache-2.0
//
// Two commands: spawn and reap. Libraries that most kernels need are loaded here
// once, so that no runner has to map and link them again.
#include "eval/runner/host.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <map>
#include <memory>

#include "eval/runner/child.hpp"
#include "eval/runner/protocol.hpp"
#include "os/sandbox.hpp"
#include "os/socket.hpp"

namespace ke::runner {

int host_main(int socket_fd);

namespace {

int run_child(void* argument) { return child_main(*static_cast<ChildOptions*>(argument)); }

class HostProcess {
 public:
  explicit HostProcess(int socket) : socket_(socket) {}

  int serve() {
    for (const char* name : {"libgomp.so.1", "libstdc++.so.6", "libm.so.6"}) {
      dlopen(name, RTLD_NOW | RTLD_LOCAL);  // absent: a kernel that needs it says so
    }
    const auto ever = std::chrono::hours(24 * 30);
    while (true) {
      Result<std::optional<os::Message>> message =
          os::receive_message(socket_, kPacketBytesMax, ever);
      if (!message || !message->has_value()) return 0;
      int pidfd = -1;
      const HostReply reply = obey(**message, pidfd);
      const int descriptors[] = {pidfd};
      const Result<void> sent =
          os::send_message(socket_, packet_of(reply), std::span(descriptors, pidfd >= 0 ? 1 : 0),
                           std::chrono::seconds(60));
      if (!sent) return 0;
    }
  }

 private:
  static HostReply failed(const Error& error) {
    HostReply reply;
    put_text(reply.text, error.to_string());
    return reply;
  }

  HostReply obey(os::Message& message, int& pidfd) {
    Reader reader(message.bytes);
    const auto command = static_cast<HostCommand>(reader.integer());
    if (command == HostCommand::spawn && message.descriptors.size() == 1) {
      return spawn(reader, message.descriptors[0].get(), pidfd);
    }
    if (command == HostCommand::reap) return reap(reader.integer());
    return failed(Error{Errc::internal, "the runner host got an unknown command"});
  }

  // How many libraries the room shows, then their paths; -1: all there are.
  static std::vector<os::VisiblePath> visible_paths(Reader& reader) {
    const int64_t count = reader.integer();
    if (count < 0) return os::toolchain_paths();
    std::vector<os::VisiblePath> paths;
    for (int64_t i = 0; i < count && reader.ok(); ++i) {
      paths.push_back({.host = reader.text(), .optional = true});
    }
    return paths;
  }

  Result<const os::Room*> room(int64_t memory_bytes, int64_t threads, Reader& reader) {
    if (!room_) {
      os::RoomOptions options;
      options.paths = visible_paths(reader);
      options.system_calls = os::SystemCalls::run;
      options.tmp_bytes = 0;
      options.memory_bytes = memory_bytes;
      options.processes_max = static_cast<int32_t>(4 * threads + 32);
      room_ = std::make_unique<os::Room>(TRY(os::Room::prepare(options)));
    }
    return const_cast<const os::Room*>(room_.get());
  }

  // memory limit, threads, scratch limit, visible libraries
  HostReply spawn(Reader& reader, int socket, int& pidfd) {
    const int64_t memory_bytes = reader.integer();
    ChildOptions child;
    child.socket = socket;
    child.threads = static_cast<int32_t>(reader.integer());
    child.scratch_bytes_max = reader.integer();
    const Result<const os::Room*> prepared = room(memory_bytes, child.threads, reader);
    if (!prepared) return failed(prepared.error());
    os::CloneOptions options;
    options.entry = run_child;
    options.argument = &child;
    options.descriptors = {socket};
    options.limits.data_bytes = memory_bytes;
    options.limits.file_size_bytes = 0;
    Result<os::Child> cloned = os::clone_into_room(**prepared, options);
    if (!cloned) return failed(cloned.error());
    HostReply reply;
    reply.ok = 1;
    reply.pid = cloned->pid();
    put_text(reply.text, cloned->report().protections());
    pidfd = cloned->pidfd();
    children_.emplace(reply.pid, std::move(*cloned));
    return reply;
  }

  HostReply reap(int64_t pid) {
    const auto found = children_.find(pid);
    if (found == children_.end()) {
      return failed(Error{Errc::internal, "the runner host was asked about a stranger"});
    }
    HostReply reply;
    reply.ok = 1;
    reply.pid = pid;
    // What it ended with by itself, if it did; killed otherwise.
    const Result<std::optional<os::ExitStatus>> ended =
        found->second.wait(std::chrono::milliseconds(0));
    const os::ExitStatus status = ended && ended->has_value() ? **ended : found->second.kill();
    reply.exit_code = status.code;
    reply.signal = status.signal;
    children_.erase(found);
    return reply;
  }

  int socket_;
  std::unique_ptr<os::Room> room_;
  std::map<int64_t, os::Child> children_;
};

}  // namespace

int host_main(int socket_fd) { return HostProcess(socket_fd).serve(); }

}  // namespace ke::runner

namespace ke {
int runner_host_main(int socket_fd) { return runner::host_main(socket_fd); }
}  // namespace ke
