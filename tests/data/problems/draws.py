# SPDX-License-Identifier: Apache-2.0
"""Two draws: a dropout whose noise is laid out as its input, and numbers for a weight."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.25)
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 2, 16))

    def forward(self, x):
        return self.dropout(x) + torch.randn_like(self.scale) * self.scale


def get_inputs():
    return [torch.randn(16, 32).t()]


def get_init_inputs():
    return []
