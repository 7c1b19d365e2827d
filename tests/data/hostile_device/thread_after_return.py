# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, nondeterministic, policy_violation, crashed
# A thread fills in the result after the call has returned.
import threading
import time


class ModelNew(Base):
    def forward(self, x):
        y = torch.zeros_like(x)

        def later():
            time.sleep(0.05)
            with torch.no_grad():
                y.copy_(self.right(x))

        threading.Thread(target=later, daemon=True).start()
        return y
