# SPDX-License-Identifier: Apache-2.0
"""A GELU followed by a layer norm: one pass over memory instead of several."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(nn.functional.gelu(x))


def get_inputs() -> list:
    return [torch.randn(2048, 768)]


def get_init_inputs() -> list:
    return [768]
