// SPDX-License-Identifier: Apache-2.0
//
// The device that schedules are made and estimated for.
#pragma once

#include <cstdint>

namespace ke::cuda {

// One H200, as measured with driver 580: a copy through memory, sums of long rows, and what a copy
// leaves for its writes then; a library fp32 product of 8192 cubed; tiny kernels in a row.
struct Device {
  int64_t multiprocessors = 132;
  int64_t threads_per_multiprocessor = 2048;
  int64_t l2_bytes = 60 << 20;
  double bandwidth = 4.3e12;  // bytes read and written per second from memory
  double read_bandwidth = 4.57e12, write_bandwidth = 4.02e12;  // of one alone
  double flops_f32 = 51e12;  // a second, multiply and add counted as two
  double launch_ns = 3800;   // of one kernel in a stream
  int64_t shared_bytes_max = 227 << 10;
  int64_t cluster_max = 8;  // blocks that read each other's shared memory: compute capability 9.0
  bool has_warpgroup_products = true;  // of tiles in shared memory: compute capability 9.0

  int64_t threads() const { return multiprocessors * threads_per_multiprocessor; }
};

}  // namespace ke::cuda
