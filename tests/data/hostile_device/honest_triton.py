# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted
# command: bench
# needs: device
# One kernel for both operations.
import triton
import triton.language as tl


@triton.jit
def scale_shift(x, bias, y, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x + at, mask=inside) * 2 + tl.load(bias + at % columns, mask=inside)
    tl.store(y + at, value, mask=inside)


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        count = x.numel()
        scale_shift[(triton.cdiv(count, 1024),)](x, self.bias, y, count, x.shape[1], BLOCK=1024)
        return y
