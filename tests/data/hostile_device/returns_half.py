# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# A narrower type, half of the bytes.


class ModelNew(Base):
    def forward(self, x):
        return self.right(x).half()
