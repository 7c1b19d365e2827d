# SPDX-License-Identifier: Apache-2.0
"""Cannot run in float64: an operand keeps its narrow type."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x @ torch.ones(16, 4, dtype=torch.float32)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
