# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end scripts share: the binary, problem files, skipping without PyTorch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

SOURCE = Path(os.environ.get("KE_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BINARY = os.environ.get("KE_BINARY", str(SOURCE / "build/kernelevolve"))
PYTHON = os.environ.get("KE_PYTHON", str(SOURCE / ".venv/bin/python"))

RELU = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 1000)]

def get_init_inputs():
    return []
"""


# Of RELU, for any shape; SIGN stands for what is wrong with it.
HAND_WRITTEN = """
#include "kernelevolve/kernel.h"

struct Work { const float* x; float* y; int64_t n; };

static void rows(int64_t i, void* arg) {
  const Work* work = static_cast<const Work*>(arg);
  const int64_t from = work->n * i / 8, to = work->n * (i + 1) / 8;
  for (int64_t k = from; k < to; ++k) work->y[k] = work->x[k] < 0 ? SIGN 0.0f : work->x[k];
}

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
                         int32_t output_count, ke_context* context) {
  if (input_count != 1 || output_count != 1) return 1;
  Work work = {static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data), 1};
  for (int32_t d = 0; d < inputs[0].ndim; ++d) work.n *= inputs[0].shape[d];
  context->parallel_for(context->pool, 8, rows, &work);
  return 0;
}
"""


class Case(unittest.TestCase):
    """A temporary folder a test; everything runs in it."""

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kernelevolve-e2e-")
        self.folder = Path(self._folder.name)

    def tearDown(self) -> None:
        self._folder.cleanup()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run_binary(self, *arguments: object, timeout: float = 900, **environment: str):
        env = dict(os.environ, KE_PYTHON=PYTHON, **environment)
        return subprocess.run(
            [BINARY, *map(str, arguments)],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def run_json(self, *arguments: object, code: int = 0, timeout: float = 900) -> dict:
        ran = self.run_binary(*arguments, "--json", timeout=timeout)
        self.assertEqual(ran.returncode, code, ran.stderr + ran.stdout)
        return json.loads(ran.stdout)

    def assert_refused(self, ran, *words: str) -> None:
        """Exit code 2, one sentence on stderr that holds the words, no trace of a crash."""
        self.assertEqual(ran.returncode, 2, ran.stderr + ran.stdout)
        lines = [line for line in ran.stderr.splitlines() if line.startswith("kernelevolve: ")]
        self.assertEqual(len(lines), 1, ran.stderr)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertNotIn("Traceback", ran.stderr)


class CachedCase(Case):
    """All tests of a class in one folder, which each finds empty but for the workspace's cache.

    What torch.compile made of a problem lies there, and the measured machine profile: made anew in
    every test, they would take most of its time.
    """

    @classmethod
    def setUpClass(cls) -> None:
        cls._shared = tempfile.TemporaryDirectory(prefix="kernelevolve-e2e-")
        cls.addClassCleanup(cls._shared.cleanup)

    def setUp(self) -> None:
        self.folder = Path(self._shared.name)

    def tearDown(self) -> None:
        workspace = self.folder / ".kernelevolve"
        for folder, kept in ((self.folder, ".kernelevolve"), (workspace, "cache")):
            for path in folder.iterdir() if folder.is_dir() else ():
                if path.name == kept:
                    continue
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def main() -> None:
    probe = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True)
    if probe.returncode != 0:
        print(f"skipped: {PYTHON} has no PyTorch", file=sys.stderr)
        sys.exit(77)
    unittest.main(verbosity=2)
