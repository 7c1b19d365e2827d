# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, nondeterministic
# Computes nothing: hopes that what the allocator hands out holds a result of before.


class ModelNew(Base):
    def forward(self, x):
        return torch.empty_like(x)
