# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted, crashed, policy_violation
# command: bench
# needs: device
# alone: yes
# Takes all of the device's memory that is left and keeps it: the judge must cope.


class ModelNew(Base):
    held = []

    def forward(self, x):
        size = 1 << 34
        while size >= 1 << 21 and len(ModelNew.held) < 4096:
            try:
                ModelNew.held.append(torch.empty(size, dtype=torch.uint8, device=x.device))
            except RuntimeError:
                size //= 2
        return self.right(x)
