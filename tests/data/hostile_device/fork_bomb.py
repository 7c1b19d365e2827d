# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, timed_out
# As many processes as it is given, up to two thousand.
import os
import time


class ModelNew(Base):
    def forward(self, x):
        for _ in range(2000):
            if os.fork() == 0:
                time.sleep(20)
                os._exit(0)
        return self.right(x)
