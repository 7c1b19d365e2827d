# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# Right for every finite number of moderate size.


class ModelNew(Base):
    def forward(self, x):
        return self.right(x.clamp(-1e30, 1e30))
