// SPDX-License-Identifier: Apache-2.0
//
// Unix socket pairs between a parent and its children: bytes and descriptors with time limits. The
// end of the other side is data, not an error. Received descriptors are close-on-exec. A process
// never gets SIGPIPE from these functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

// packets: one send is one receive (SOCK_SEQPACKET). stream: bytes in order (SOCK_STREAM).
enum class SocketKind : uint8_t { packets, stream };

// Both ends are close-on-exec and blocking.
Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair(SocketKind kind);

struct Message {
  std::string bytes;
  std::vector<FileDescriptor> descriptors;
};

inline constexpr int kDescriptorsPerMessageMax = 253;  // SCM_MAX_FD of Linux

// Sends all bytes with the descriptors attached to the first one. A stream may need several system
// calls. At least one byte. Errc::timed_out; Errc::not_found when the other side is gone.
Result<void> send_message(int socket, std::string_view bytes, std::span<const int> descriptors,
                          Nanoseconds timeout);

// Receives what is there, at most bytes_max: a whole packet, or some bytes of a stream. Absent when
// the other side has closed. Errc::timed_out when nothing came; Errc::invalid when a packet was
// larger than bytes_max (its descriptors are closed).
Result<std::optional<Message>> receive_message(int socket, int64_t bytes_max, Nanoseconds timeout);

// Reads lines from a stream socket, keeping what follows for the next call; the descriptors that
// came with the bytes are returned with the line in which they arrived.
class LineReader {
 public:
  LineReader(int socket, int64_t line_bytes_max) : socket_(socket), bytes_max_(line_bytes_max) {}

  // A line without its '\n'; absent at the end. Errors as receive_message; Errc::invalid when a
  // line is longer than line_bytes_max.
  Result<std::optional<Message>> next(Nanoseconds timeout);

 private:
  int socket_;
  int64_t bytes_max_;
  std::string pending_;
  std::vector<FileDescriptor> descriptors_;
};

// Waits until a descriptor is readable (or has ended). False: the timeout passed.
Result<bool> wait_readable(int fd, Nanoseconds timeout);

}  // namespace ke::os
