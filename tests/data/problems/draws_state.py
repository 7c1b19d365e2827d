# SPDX-License-Identifier: Apache-2.0
"""Initial states drawn in forward(), and dropout inside of a recurrent layer."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(8, 12, 2, dropout=0.5)

    def forward(self, x):
        state = (torch.randn(2, 3, 12), torch.randn(2, 3, 12))
        return self.lstm(x, state)[0]


def get_inputs():
    return [torch.randn(5, 3, 8)]


def get_init_inputs():
    return []
