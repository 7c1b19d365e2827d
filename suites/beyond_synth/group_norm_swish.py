# SPDX-License-Identifier: Apache-2.0
"""A group norm with a swish, as between the convolutions of a diffusion model."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return y * torch.sigmoid(y)


def get_inputs() -> list:
    return [torch.randn(4, 128, 32, 32)]


def get_init_inputs() -> list:
    return [128, 16]
