# SPDX-License-Identifier: Apache-2.0
"""A permutation is no tensor of independent draws."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x[torch.randperm(32)]


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
