// SPDX-License-Identifier: Apache-2.0
#include "mcp/lines.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ke::mcp {
namespace {

constexpr size_t kChunk = 64 * 1024;

}  // namespace

bool LineReader::wait() const {
  std::array<pollfd, 2> fds = {pollfd{fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) return true;  // read(2) will say what is wrong
  }
  return fds[1].revents == 0;
}

LineEnd LineReader::next(std::string& line) {
  for (;;) {
    const size_t end = buffer_.find('\n', searched_);
    const bool found = end != std::string::npos;
    const bool last = !found && ended_ && (!buffer_.empty() || skipping_);
    const size_t length = found ? end : buffer_.size();
    const bool too_long = skipping_ || static_cast<int64_t>(length) > bytes_max_;
    if (found || last) {
      if (!too_long) line.assign(buffer_, 0, length);
      buffer_.erase(0, length + (found ? 1 : 0));
      searched_ = 0;
      skipping_ = false;
      return too_long ? LineEnd::too_long : LineEnd::line;
    }
    if (ended_) return LineEnd::end;
    skipping_ = too_long;
    if (skipping_) buffer_.clear();
    searched_ = buffer_.size();
    if (!wait()) return LineEnd::stopped;
    std::array<char, kChunk> chunk;
    const ssize_t got = ::read(fd_, chunk.data(), chunk.size());
    if (got > 0) {
      buffer_.append(chunk.data(), static_cast<size_t>(got));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      ended_ = true;
    }
  }
}

}  // namespace ke::mcp
