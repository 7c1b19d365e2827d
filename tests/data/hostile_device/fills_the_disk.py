# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed
# Writes where it may write until it is stopped, at most 4 GiB.
import tempfile

MIB = 1 << 20


class ModelNew(Base):
    def forward(self, x):
        with tempfile.TemporaryFile() as file:
            for _ in range(4096):
                file.write(b"\1" * MIB)
        return self.right(x)
