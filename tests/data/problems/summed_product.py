# SPDX-License-Identifier: Apache-2.0
"""A product of which only the row sums are used: one matrix-vector product does."""

import torch


class Model(torch.nn.Module):
    def __init__(self, inner, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns, inner))

    def forward(self, x):
        return torch.sum(torch.matmul(x, self.weight.T) / 2, dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, 96]
