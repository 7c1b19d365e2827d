# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, timed_out
# Takes and touches memory of the processor until it is stopped, at most 24 GiB.
MIB = 1 << 20


class ModelNew(Base):
    def forward(self, x):
        held = []
        for _ in range(96):
            held.append(bytearray(b"\1") * (256 * MIB))
        return self.right(x)
