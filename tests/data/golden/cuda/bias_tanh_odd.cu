// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_add.
// Inputs: x float32[37, 101], b float32[101].
// Outputs: y float32[37, 101].
//
// ke:scratch 0
// ke:launch kernel0_add grid=(30, 1) block=(128) args=(out0, in0, in1)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_add: aten.add.Tensor, aten.tanh.
// Schedule: 1 of j a thread, 1 times; blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) kernel0_add(float* __restrict__ y, const float*
    __restrict__ x, const float* __restrict__ b) {
  const int itemIndex = (int)blockIdx.x * 128 + (int)threadIdx.x;
  if (itemIndex >= 3737) return;
  const int i = itemIndex / 101;
  const int j = itemIndex % 101;
  const float tanh_0 = ke_tanh((x[i * 101 + j] + b[j]));
  y[i * 101 + j] = tanh_0;
}

