# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# Signals its parent, the room's first process and all others; then it is wrong, so that only a
# judge that lives can say so.
import os
import signal


class ModelNew(Base):
    def forward(self, x):
        victims = [os.getppid()]
        if sum(name.isdigit() for name in os.listdir("/proc")) < 8:  # else it is in no room
            victims += [1, -1]
        for pid in victims:
            try:
                if pid != 0:
                    os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        return torch.zeros_like(x)
