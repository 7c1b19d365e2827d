# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed
# Takes 4 GiB of the place where it may write. In one request: the limit answers it at once, where writing them would be ended by the clock on a slow machine.
import os
import tempfile


class ModelNew(Base):
    def forward(self, x):
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, 4 << 30)
        return self.right(x)
