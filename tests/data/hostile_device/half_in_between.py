# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# The right type around arithmetic of eleven bits.


class ModelNew(Base):
    def forward(self, x):
        return (x.half() * 2 + self.bias.half()).float()
