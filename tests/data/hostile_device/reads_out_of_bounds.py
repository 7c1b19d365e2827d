# SPDX-License-Identifier: Apache-2.0
# verdicts: out_of_bounds
# needs: device
# A Triton kernel without its mask: far beyond what it was given.
import triton
import triton.language as tl


@triton.jit
def beyond(x, y, far, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at + far))


class ModelNew(Base):
    def forward(self, x):
        y = self.right(x)
        beyond[(1,)](x, y, 1 << 40, BLOCK=128)
        return y
