# SPDX-License-Identifier: Apache-2.0
"""A row softmax over attention-sized scores."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores * 0.125, dim=-1)


def get_inputs() -> list:
    return [torch.randn(8, 256, 512)]


def get_init_inputs() -> list:
    return []
