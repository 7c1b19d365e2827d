// SPDX-License-Identifier: Apache-2.0
#include "os/file_descriptor.hpp"

#include <unistd.h>

namespace ke::os {

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace ke::os
