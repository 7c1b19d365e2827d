# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted
# command: bench
# Two calls of the library.


class ModelNew(Base):
    def forward(self, x):
        return self.right(x)
