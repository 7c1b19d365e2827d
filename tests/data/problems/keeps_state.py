# SPDX-License-Identifier: Apache-2.0
"""forward() replaces an attribute: every call must see the first one."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.ones(4)

    def forward(self, x):
        self.hidden = torch.tanh(self.hidden + x)
        return self.hidden


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
