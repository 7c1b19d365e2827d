# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# needs: device
# problem: product.py
# Half precision in a product that is to be single.
import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
