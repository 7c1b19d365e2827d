# SPDX-License-Identifier: Apache-2.0
"""forward() writes its argument: every call must see the original."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


def get_inputs():
    return [torch.zeros(4, 4)]


def get_init_inputs():
    return []
