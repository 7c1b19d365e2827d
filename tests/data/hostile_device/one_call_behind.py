# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# Returns what it computed for the call before.


class ModelNew(Base):
    before = None

    def forward(self, x):
        result, ModelNew.before = ModelNew.before, self.right(x)
        return ModelNew.before if result is None else result
