# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, nondeterministic, policy_violation, crashed, accepted
# command: bench
# claims_at_most: 1.0
# needs: device
# Works fifty times as much, in a thread that goes on when the call has returned.
import threading


class ModelNew(Base):
    def forward(self, x):
        y = torch.empty_like(x)
        stream = torch.cuda.Stream()

        def later():
            with torch.no_grad(), torch.cuda.stream(stream):
                for _ in range(50):
                    torch.add(x * 2, self.bias, out=y)

        threading.Thread(target=later, daemon=True).start()
        return y
