// SPDX-License-Identifier: Apache-2.0
//
// Runs kernel0_argmax.
// Inputs: x float32[128, 256, 256].
// Outputs: y int64[128, 256].
//
// ke:scratch 0
// ke:launch kernel0_argmax grid=(1024, 1) block=(512) shared=8192 args=(out0, in0)
#include <stdint.h>

#include "kernelevolve/device.h"

// kernel0_argmax: aten.argmax.default.
// Schedule: neighbouring threads take neighbouring rows, 16 warps share them.
extern "C" __global__ void __launch_bounds__(512) kernel0_argmax(int64_t* __restrict__ y, const
    float* __restrict__ x) {
  const int memberIndex = (int)threadIdx.x / 32;
  const int j = (int)((int)blockIdx.x % 8) * 32 + (int)threadIdx.x % 32;
  const int outerIndex = (int)blockIdx.x / 8;
  const int n = outerIndex;
  ke_extreme<float> totalOf0 = {-ke_infinity_float(), INT64_MAX};
  for (int groupIndex = memberIndex; groupIndex < 256; groupIndex += 16) {
    const int k = groupIndex;
    const float x_0 = x[n * 65536 + k * 256 + j];
    totalOf0 = ke_argmax(totalOf0, ke_extreme<float>{x_0, (int64_t)k});
  }
  totalOf0 = ke_join_column<16>(totalOf0, ke_shared(), [](ke_extreme<float> a, ke_extreme<float> b)
      { return (ke_extreme<float>)(ke_argmax(a, b)); });
  const int64_t yRow1 = totalOf0.position;
  if (memberIndex == 0) {
    y[n * 256 + j] = yRow1;
  }
}

