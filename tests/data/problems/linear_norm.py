# SPDX-License-Identifier: Apache-2.0
"""Parameters, buffers that training mode writes, and a tied weight."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first = torch.nn.Linear(features, features)
        self.second = torch.nn.Linear(features, features)
        self.second.weight = self.first.weight
        self.norm = torch.nn.BatchNorm1d(features)

    def forward(self, x):
        return self.norm(self.second(torch.relu(self.first(x))))


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16]
