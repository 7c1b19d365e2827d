# SPDX-License-Identifier: Apache-2.0
import random

import torch


class Model(torch.nn.Module):
    def forward(self, x, factor):
        return x * factor


def get_inputs():
    return [torch.randn(4), random.random()]


def get_init_inputs():
    return []
