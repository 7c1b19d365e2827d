# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output
# problem: product.py
# needs: device
# Has the library round operands to ten bits, for everybody in its process.
import torch

torch.backends.cuda.matmul.allow_tf32 = True


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
