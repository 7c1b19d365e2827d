# SPDX-License-Identifier: Apache-2.0
"""Pairwise dot products of feature vectors, below the diagonal, as in a DLRM."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(features, features, offset=-1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        products = torch.bmm(x, x.transpose(1, 2))
        return products[:, self.rows, self.columns]


def get_inputs() -> list:
    return [torch.randn(512, 27, 64)]


def get_init_inputs() -> list:
    return [27]
