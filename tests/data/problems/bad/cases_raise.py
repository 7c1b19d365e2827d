# SPDX-License-Identifier: Apache-2.0
import torch


class Model(torch.nn.Module):
    def forward(self, x, scale=1.0):
        return x * scale


def get_inputs():
    return [torch.randn(4), 2.0]


def get_input_cases():
    raise ValueError("no cases today")


def get_init_inputs():
    return []
