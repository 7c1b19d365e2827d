# SPDX-License-Identifier: Apache-2.0
# verdicts: timed_out
# needs: device
# Work on the device that does not end while anybody waits.


class ModelNew(Base):
    def forward(self, x):
        torch.cuda._sleep(1 << 46)
        return self.right(x)
