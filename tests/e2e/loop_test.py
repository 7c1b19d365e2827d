# SPDX-License-Identifier: Apache-2.0
"""The loop on the real binary: optimize, verify, bench, graph, export, kill and resume."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from harness import BINARY, HAND_WRITTEN, PYTHON, RELU, CachedCase, main


DECIDES = "nn.functional.dropout(x if float(x[0, 0]) > -1e30 else -x, 0.3)"

DROPS = """
#include "kernelevolve/kernel.h"

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
                         int32_t output_count, ke_context*) {
  if (input_count != 2 || output_count != 1 || inputs[1].dtype_code != KE_DTYPE_BOOL) return 1;
  const float* x = static_cast<const float*>(inputs[0].data);
  const bool* mask = static_cast<const bool*>(inputs[1].data);
  float* y = static_cast<float*>(outputs[0].data);
  for (int64_t k = 0; k < 64 * 1000; ++k) y[k] = x[k] * (KEPT ? 1 / 0.7f : 0.0f);
  (void)mask;
  return 0;
}
"""

DROPOUT = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(96, 128)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        y = self.dropout(torch.relu(self.linear(x)))
        y = y + torch.rand_like(y) * torch.randn(64, 1)
        return y * torch.bernoulli(torch.sigmoid(x[:, :1]))

def get_inputs():
    return [torch.randn(64, 96)]

def get_init_inputs():
    return []
"""


class Loop(CachedCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU)

    def test_optimize_finds_an_accepted_kernel_and_the_graph_shows_it(self) -> None:
        result = self.run_json(
            "optimize", "relu.py", "--steps", 6, "--seed", 1, "--out", "best.cpp"
        )
        self.assertEqual(result["verdict"], "accepted")
        self.assertGreater(result["speedup_vs_eager"], 0)
        self.assertGreater(result["floor_ns"], 0)
        self.assertIn("ke_launch", (self.folder / "best.cpp").read_text())
        node = result["node"]
        self.assertIn("ke_launch", self.run_binary("graph", "show", node).stdout)
        self.assertEqual(self.run_binary("graph", "ls").returncode, 0)
        self.assertIn(str(node), self.run_binary("graph", "lineage", node).stdout)
        dump = json.loads(self.run_binary("graph", "export").stdout)
        self.assertGreaterEqual(len(dump["nodes"]), 1)
        verified = self.run_json("verify", "relu.py", "best.cpp")
        self.assertEqual(verified["verdict"], "accepted")

    def test_verify_and_bench_judge_a_kernel_written_by_hand(self) -> None:
        self.write("good.cpp", HAND_WRITTEN.replace("SIGN", ""))
        benched = self.run_json("bench", "relu.py", "good.cpp")
        self.assertEqual(benched["verdict"], "accepted")
        self.assertGreater(benched["time_ns"], 0)
        self.assertGreater(benched["baseline_ns"]["eager"], 0)
        self.write("wrong.cpp", HAND_WRITTEN.replace("SIGN", "1e-3f +"))
        self.assertEqual(
            self.run_json("verify", "relu.py", "wrong.cpp", code=1)["verdict"], "wrong_output"
        )
        self.write("broken.cpp", "int ke_launch(;")
        self.assertEqual(
            self.run_json("verify", "relu.py", "broken.cpp", code=1)["verdict"], "compile_error"
        )

    def test_a_killed_run_resumes_without_losing_or_repeating(self) -> None:
        environment = dict(os.environ, KE_PYTHON=PYTHON)
        process = subprocess.Popen(
            [BINARY, "optimize", "relu.py", "--steps", "16", "--seed", "3"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        database = self.folder / ".kernelevolve/experience.db"
        deadline = time.monotonic() + 480
        before: list = []
        while len(before) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
            before = self.evaluations(database)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = self.evaluations(database)
        self.assertGreaterEqual(len(before), 4)
        result = self.run_json("resume")
        self.assertEqual(result["verdict"], "accepted")
        after = self.evaluations(database)
        self.assertEqual(after[: len(before)], before, "an evaluated node was lost")
        screened = [node for node, effort in after if effort == "screen"]
        self.assertEqual(len(screened), len(set(screened)), "a node was judged twice")

    @staticmethod
    def evaluations(database) -> list:
        if not database.exists():
            return []
        try:
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                rows = connection.execute("SELECT node, effort FROM evaluations ORDER BY id")
                return rows.fetchall()
        except sqlite3.OperationalError:
            return []

    def test_interrupt_ends_with_the_best_so_far(self) -> None:
        process = subprocess.Popen(
            [BINARY, "optimize", "relu.py", "--steps", "500", "--seed", "4", "--json"],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=PYTHON),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        database = self.folder / ".kernelevolve/experience.db"
        deadline = time.monotonic() + 480
        while len(self.evaluations(database)) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=480)
        self.assertEqual(process.returncode, 0)
        result = json.loads(output)
        self.assertEqual((result["verdict"], result["ended"]), ("accepted", "stopped"))

    def test_exported_module_drops_in(self) -> None:
        result = self.run_json("optimize", "relu.py", "--steps", 3, "--seed", 1)
        ran = self.run_binary("export", result["node"], "--as", "module", "--out", "module")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        script = self.write(
            "use.py",
            """
            import glob, sys, warnings
            import torch
            sys.path.insert(0, "module")
            skipped = ("original.py", "check.py")
            name = [p for p in glob.glob("module/*.py") if p[7:] not in skipped][0]
            module = __import__(name[len("module/"):-3])
            model = module.ModelNew()
            x = torch.randn(64, 1000)
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("error")
                assert torch.equal(model(x), torch.relu(x))
            with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                other = torch.randn(3, 5)
                assert torch.equal(model(other), torch.relu(other))
            assert len(caught) == 1, "an unproved shape must warn once and fall back"
        """,
        )
        used = subprocess.run([PYTHON, script], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(used.returncode, 0, used.stderr)

    def test_a_kernel_written_by_hand_reads_what_forward_draws(self) -> None:
        # No graph says what this computes: only the kernel by hand can.
        self.write("draws.py", RELU.replace("torch.relu(x)", DECIDES))
        self.write("good.cpp", DROPS.replace("KEPT", "mask[k]"))
        self.assertEqual(self.run_json("verify", "draws.py", "good.cpp")["verdict"], "accepted")
        self.write("wrong.cpp", DROPS.replace("KEPT", "(k % 10 < 7)"))
        wrong = self.run_json("verify", "draws.py", "wrong.cpp", code=1)
        self.assertEqual(wrong["verdict"], "wrong_output")

    def test_what_forward_draws_is_handed_to_kernels_and_drawn_by_the_exported_module(self) -> None:
        self.write("dropout.py", DROPOUT)
        result = self.run_json("optimize", "dropout.py", "--steps", 4, "--seed", 1)
        self.assertEqual(result["verdict"], "accepted")
        self.assertIn("random", result["flags"])
        ran = self.run_binary("export", result["node"], "--as", "module", "--out", "module")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        manifest = json.loads((self.folder / "module/manifest.json").read_text())
        drawn = [spec["name"] for spec in manifest["inputs"] if spec["kind"] == "random"]
        self.assertEqual(drawn, ["draw0", "draw1", "draw2", "draw3"])
        self.assertEqual(manifest["draws"][0], {"method": "bernoulli_", "parameters": [0.7]})
        script = self.write(
            "use.py",
            """
            import sys, warnings
            import torch
            sys.path.insert(0, "module")
            import problem_dropout as module
            warnings.simplefilter("error")
            old, new = module.Model(), module.ModelNew()
            new.load_state_dict(old.state_dict())
            x = torch.randn(64, 96)
            with torch.no_grad():
                torch.manual_seed(7)
                expected = old(x), old(x)
                torch.manual_seed(7)
                found = new(x), new(x)
            for e, f in zip(expected, found):
                assert torch.allclose(e, f, atol=1e-5), (e - f).abs().max()
            assert not torch.equal(found[0], found[1]), "every call must draw anew"
        """,
        )
        used = subprocess.run([PYTHON, script], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(used.returncode, 0, used.stderr)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
