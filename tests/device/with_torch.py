# SPDX-License-Identifier: Apache-2.0
"""PyTorch for a test: `from with_torch import SOURCE, torch`.

The interpreter that runs the tests need not be the one that has it; then the test starts anew under
KE_PYTHON, or under the one in the checkout's .venv. Without any, it is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys

SOURCE = os.environ["KE_SOURCE_DIR"]

try:
    import torch  # noqa: F401
except ImportError:
    python = os.environ.get("KE_PYTHON", os.path.join(SOURCE, ".venv/bin/python"))
    if "KE_AGAIN" not in os.environ and os.path.exists(python):
        again = dict(os.environ, KE_AGAIN="1")
        sys.exit(subprocess.call([python, os.path.abspath(sys.argv[0])], env=again))
    sys.exit(77)
