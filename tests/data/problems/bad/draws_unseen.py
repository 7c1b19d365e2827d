# SPDX-License-Identifier: Apache-2.0
"""Draws by Python's generator, of which PyTorch sees nothing."""

import random

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * random.random()


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
