# SPDX-License-Identifier: Apache-2.0
import torch


class Model(torch.nn.Module):
    def forward(self, x, scale=1.0):
        return x * scale


def get_inputs():
    return [torch.randn(4), 2.0]


def get_input_cases():
    return [[torch.randn(3), 2.0], [torch.randn(3), 2.0]]


def get_init_inputs():
    return []
