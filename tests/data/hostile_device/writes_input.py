# SPDX-License-Identifier: Apache-2.0
# verdicts: input_mutated
# needs: device
# In place, where the argument is the judge's.


class ModelNew(Base):
    def forward(self, x):
        y = self.right(x)
        x.zero_()
        return y
