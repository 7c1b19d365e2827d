# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# Nothing done.


class ModelNew(Base):
    def forward(self, x):
        return x
