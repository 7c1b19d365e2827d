// SPDX-License-Identifier: Apache-2.0
//
// See unix(7) on SCM_RIGHTS.
#include "os/socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/assert.hpp"
#include "os/file_system.hpp"

namespace ke::os {

namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

SteadyTime deadline_after(Nanoseconds timeout) {
  const SteadyTime now = std::chrono::steady_clock::now();
  const auto longest = std::chrono::hours(24 * 365);
  return now + (timeout < longest ? timeout : Nanoseconds(longest));
}

// False: the deadline passed.
Result<bool> wait_for(int fd, short events, SteadyTime deadline) {
  while (true) {
    const Nanoseconds left = deadline - std::chrono::steady_clock::now();
    const int64_t ns = left.count() > 0 ? left.count() : 0;
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    pollfd waited{fd, events, 0};
    const int ready = ppoll(&waited, 1, &time, nullptr);
    if (ready > 0) return true;
    if (ready == 0 && ns == 0) return false;
    if (ready < 0 && errno != EINTR) return system_error(errno, "wait for a descriptor");
  }
}

struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kDescriptorsPerMessageMax)];
};

std::vector<FileDescriptor> take_descriptors(msghdr& header) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair(SocketKind kind) {
  int ends[2];
  const int type = kind == SocketKind::packets ? SOCK_SEQPACKET : SOCK_STREAM;
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error(errno, "make a socket pair");
  }
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

Result<void> send_message(int socket, std::string_view bytes, std::span<const int> descriptors,
                          Nanoseconds timeout) {
  KE_ASSERT(!bytes.empty());
  KE_ASSERT(descriptors.size() <= kDescriptorsPerMessageMax);
  const SteadyTime deadline = deadline_after(timeout);
  ControlBuffer control{};
  bool attach = !descriptors.empty();
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (attach) {
      header.msg_control = control.bytes;
      header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      attach = false;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Error{Errc::not_found, "the other side of the socket is gone"};
    } else if (errno == EAGAIN) {
      if (!TRY(wait_for(socket, POLLOUT, deadline))) {
        return Error{Errc::timed_out, "the other side of the socket takes no more"};
      }
    } else if (errno != EINTR) {
      return system_error(errno, "send a message");
    }
  }
  return {};
}

Result<std::optional<Message>> receive_message(int socket, int64_t bytes_max, Nanoseconds timeout) {
  KE_ASSERT(bytes_max > 0);
  const SteadyTime deadline = deadline_after(timeout);
  Message message;
  message.bytes.resize(static_cast<size_t>(bytes_max));
  ControlBuffer control{};
  while (true) {
    iovec part{message.bytes.data(), message.bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof control.bytes;
    const ssize_t count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count >= 0) {
      message.descriptors = take_descriptors(header);
      if (count == 0) return std::optional<Message>();
      if ((header.msg_flags & MSG_TRUNC) != 0) {
        return Error{Errc::invalid,
                     "a message is larger than " + std::to_string(bytes_max) + " bytes"};
      }
      message.bytes.resize(static_cast<size_t>(count));
      return std::optional(std::move(message));
    }
    if (errno == ECONNRESET) return std::optional<Message>();
    if (errno == EAGAIN) {
      if (!TRY(wait_for(socket, POLLIN, deadline))) {
        return Error{Errc::timed_out, "no message came in time"};
      }
    } else if (errno != EINTR) {
      return system_error(errno, "receive a message");
    }
  }
}

Result<std::optional<Message>> LineReader::next(Nanoseconds timeout) {
  const SteadyTime deadline = deadline_after(timeout);
  size_t searched = 0;
  while (true) {
    const size_t end = pending_.find('\n', searched);
    if (end != std::string::npos) {
      Message line{pending_.substr(0, end), std::exchange(descriptors_, {})};
      pending_.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    searched = pending_.size();
    if (static_cast<int64_t>(pending_.size()) > bytes_max_) {
      return Error{Errc::invalid, "a line is longer than " + std::to_string(bytes_max_) + " bytes"};
    }
    const Nanoseconds left = deadline - std::chrono::steady_clock::now();
    std::optional<Message> part = TRY(receive_message(socket_, 1 << 16, left));
    if (!part) {
      if (pending_.empty()) return std::optional<Message>();
      return Error{Errc::invalid, "the other side ended in the middle of a line"};
    }
    pending_ += part->bytes;
    for (FileDescriptor& fd : part->descriptors) descriptors_.push_back(std::move(fd));
  }
}

Result<bool> wait_readable(int fd, Nanoseconds timeout) {
  return wait_for(fd, POLLIN, deadline_after(timeout));
}

}  // namespace ke::os
