// SPDX-License-Identifier: Apache-2.0
//
// A stop token as a descriptor, so that whoever waits with poll(2) can be told to stop.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <stop_token>

#include "base/assert.hpp"
#include "os/file_descriptor.hpp"

namespace ke::os {

class StopEvent {
 public:
  explicit StopEvent(const std::stop_token& token)
      : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), callback_(token, Signal{fd_.get()}) {
    KE_ASSERT(fd_.valid());
  }

  int fd() const { return fd_.get(); }  // readable once a stop was asked for

 private:
  struct Signal {
    int fd;
    void operator()() const {
      const uint64_t one = 1;
      KE_ASSERT(::write(fd, &one, sizeof one) == sizeof one);
    }
  };

  FileDescriptor fd_;
  std::stop_callback<Signal> callback_;
};

}  // namespace ke::os
