# SPDX-License-Identifier: Apache-2.0
"""The pooling behind the first convolution of many image models."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_inputs() -> list:
    return [torch.randn(4, 32, 112, 112)]


def get_init_inputs() -> list:
    return []
