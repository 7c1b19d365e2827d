# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, wrong_output
# Answers that the command made no sense: a candidate's failure, not the judge's.
import gc
import struct


class ModelNew(Base):
    def forward(self, x):
        for thing in gc.get_objects():
            if type(thing).__name__ == "Runner":
                thing.socket.send(struct.pack("=qq512s", 9, 0, b""))
        return self.right(x)
