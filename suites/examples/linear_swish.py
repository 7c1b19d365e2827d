# SPDX-License-Identifier: Apache-2.0
"""A linear layer with a swish and a scale: the tail that fusion saves."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        return y * torch.sigmoid(y) * self.scale


def get_inputs() -> list:
    return [torch.randn(256, 512)]


def get_init_inputs() -> list:
    return [512, 384, 0.5]
