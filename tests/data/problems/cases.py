# SPDX-License-Identifier: Apache-2.0
"""Several shape cases, one row and none among them; a parameter that all share."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, features)

    def forward(self, x, scale):
        return torch.softmax(self.linear(x), dim=-1) * scale, x.sum()


def get_inputs():
    return [torch.randn(6, 8), 0.5]


def get_input_cases():
    return [[torch.randn(rows, 8), 0.5] for rows in (1, 0)]


def get_init_inputs():
    return [8]
