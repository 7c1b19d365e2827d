# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, nondeterministic, crashed, implausible_time
# command: bench
# needs: device
# Takes the runner's waiting for the device away, so that a batch seems to end when it is launched.
import gc

for thing in gc.get_objects():
    if type(thing).__name__ == "Trusted":
        thing.synchronize = lambda: None
        thing.wait = lambda: 0


class ModelNew(Base):
    def forward(self, x):
        y = self.right(x)
        torch.cuda._sleep(20_000_000)
        return torch.add(x * 2, self.bias, out=y)
