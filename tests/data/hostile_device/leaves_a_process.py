# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted, crashed, policy_violation
# Right, and leaves a process behind that must be gone with it.
import subprocess
import sys


class ModelNew(Base):
    def forward(self, x):
        if not hasattr(self, "left"):
            self.left = subprocess.Popen(
                [sys.executable, "-S", "-c", "import time; time.sleep(600)  # ke_hostile_sleeper"],
                start_new_session=True,
            )
        return self.right(x)
