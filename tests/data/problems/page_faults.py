# SPDX-License-Identifier: Apache-2.0
"""Returns the page faults of repeated allocations: the oracle's allocator keeps its memory."""

import resource

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        torch.relu(x)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(4):
            torch.relu(x)
        return torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before])


def get_inputs():
    return [torch.zeros(1 << 22)]


def get_init_inputs():
    return []
