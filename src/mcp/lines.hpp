// SPDX-License-Identifier: Apache-2.0
//
// Lines from a descriptor, in bounded memory: of a line that is too long nothing is kept.
#pragma once

#include <cstdint>
#include <string>

namespace ke::mcp {

enum class LineEnd : uint8_t { line, too_long, end, stopped };

class LineReader {
 public:
  // stop_fd becomes readable when reading is to end; -1: never.
  LineReader(int fd, int stop_fd, int64_t bytes_max)
      : fd_(fd), stop_fd_(stop_fd), bytes_max_(bytes_max) {}

  // Waits for the next line and puts it, without its end, into `line`. What follows the last line
  // end is a line as well. A descriptor that cannot be read has ended.
  LineEnd next(std::string& line);

 private:
  bool wait() const;  // false: stopped

  int fd_;
  int stop_fd_;
  int64_t bytes_max_;
  std::string buffer_;  // read, not yet handed out
  size_t searched_ = 0;  // of buffer_, without a line end
  bool skipping_ = false;  // the rest of a line that is too long
  bool ended_ = false;
};

}  // namespace ke::mcp
