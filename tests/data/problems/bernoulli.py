# SPDX-License-Identifier: Apache-2.0
"""The probabilities of a draw are data."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.bernoulli(torch.sigmoid(x))


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
