# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed
# More than any device has, in one piece.


class ModelNew(Base):
    def forward(self, x):
        torch.empty(1 << 42, dtype=torch.uint8, device=x.device)
        return self.right(x)
