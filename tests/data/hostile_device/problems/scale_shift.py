# SPDX-License-Identifier: Apache-2.0
"""y = 2 x + bias, 8 MiB in and out: what most of the hostile kernels answer."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(2048))

    def forward(self, x):
        return x * 2 + self.bias


def get_inputs():
    return [torch.randn(1024, 2048)]


def get_init_inputs():
    return []
