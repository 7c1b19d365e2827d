# SPDX-License-Identifier: Apache-2.0
"""Several outputs, a nested argument, a scalar, a transposed and an empty tensor; prints."""

import sys

import torch

print("loading")
print("and complaining", file=sys.stderr)


class Model(torch.nn.Module):
    def forward(self, x, pair, factor, empty):
        print("running")
        values, indices = torch.max(x, dim=1)
        return {"a": values * factor, "b": (indices, pair[0] > pair[1])}


def get_inputs():
    x = torch.randn(6, 5).t()
    return [x, (torch.rand(3), torch.rand(3)), 2.5, torch.zeros(0, 4)]


def get_init_inputs():
    return []
