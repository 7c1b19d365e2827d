# SPDX-License-Identifier: Apache-2.0
"""Rows of an embedding table summed per sample, as in recommendation models."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, rows: int, features: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, features)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.table(indices).sum(dim=1)


def get_inputs() -> list:
    return [torch.randint(0, 50_000, (1024, 32))]


def get_init_inputs() -> list:
    return [50_000, 64]
