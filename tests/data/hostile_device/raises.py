# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed
# What is no Exception.


class ModelNew(Base):
    def forward(self, x):
        raise KeyboardInterrupt
