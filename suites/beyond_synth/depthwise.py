# SPDX-License-Identifier: Apache-2.0
"""A depthwise convolution with its activation, as in mobile image models."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.hardtanh(self.conv(x), 0.0, 6.0)


def get_inputs() -> list:
    return [torch.randn(4, 96, 56, 56)]


def get_init_inputs() -> list:
    return [96]
