# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# A subclass of Tensor: what it does when it is compared is its own affair.


class Odd(torch.Tensor):
    pass


class ModelNew(Base):
    def forward(self, x):
        return self.right(x).as_subclass(Odd)
