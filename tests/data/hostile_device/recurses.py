# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, timed_out
# Until the stack ends.
import sys

sys.setrecursionlimit(1 << 30)


class ModelNew(Base):
    def forward(self, x):
        return self.forward(x)
