# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted, wrong_output, nondeterministic
# command: bench
# needs: device
# claims_at_most: 1.0
# Works fifty times as much, on a stream that nobody waits for: events on the default one see none
# of it. Right in the end, so accepted, as slow as it is.


class ModelNew(Base):
    def forward(self, x):
        if not hasattr(self, "stream"):
            self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            y = self.right(x)
            for _ in range(50):
                torch.add(x * 2, self.bias, out=y)
        return y
