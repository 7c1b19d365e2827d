# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# needs: device
# The right numbers where they are of no use.


class ModelNew(Base):
    def forward(self, x):
        return self.right(x).cpu()
