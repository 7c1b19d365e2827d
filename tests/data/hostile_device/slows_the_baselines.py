# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted, policy_violation, crashed
# command: bench
# needs: device
# claims_at_most: 1.0
# alone: yes
# Works fifty times as much, and has a process of another group keep the device busy while its own
# is stopped and baselines run.
import subprocess
import sys
import tempfile
import time

BUSY = """
import os, sys, time, torch
x = torch.randn(8192, 8192, device="cuda")
while True:  # ke_hostile_busy
    try:
        own = os.path.getmtime(sys.argv[1])
    except OSError:
        own = 0
    if time.time() - own < 0.02:
        time.sleep(0.001)
    else:
        x @ x
        torch.cuda.synchronize()
"""


class ModelNew(Base):
    mark = None

    def forward(self, x):
        if ModelNew.mark is None:
            ModelNew.mark = tempfile.NamedTemporaryFile()
            subprocess.Popen([sys.executable, "-c", BUSY, ModelNew.mark.name],
                             start_new_session=True)
            time.sleep(0.5)
        ModelNew.mark.write(b"x")
        ModelNew.mark.flush()
        y = self.right(x)
        for _ in range(50):
            torch.add(x * 2, self.bias, out=y)
        return y
