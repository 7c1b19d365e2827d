# SPDX-License-Identifier: Apache-2.0
"""Python branches on data, which torch.export refuses: no graph, but still a problem."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.sum() > -1e9:
            return torch.sin(x)
        return x


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
