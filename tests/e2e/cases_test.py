# SPDX-License-Identifier: Apache-2.0
"""Several shape cases on the real binary, one row and none among them."""

from __future__ import annotations

import json
import subprocess
import sys

from harness import HAND_WRITTEN, PYTHON, RELU, CachedCase, main

CASES = """
def get_input_cases():
    return [[torch.randn(rows, 1000)] for rows in (1, 0)]
"""

# Weights, a reduction over rows of any number, and an output that is not empty in an empty case.
NORM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        y = self.norm(torch.relu(self.linear(x)))
        return y, y.sum(dim=0)

def get_inputs():
    return [torch.randn(96, 64)]

def get_input_cases():
    return [[torch.randn(0, 64)]]

def get_init_inputs():
    return [64]
"""


class Cases(CachedCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU + CASES)

    def test_a_kernel_that_is_wrong_in_one_case_is_rejected_and_the_case_named(self) -> None:
        self.write("wrong.cpp", HAND_WRITTEN.replace("SIGN", "work->n == 64000 ? 0.0f : 1e-3f +"))
        verdict = self.run_json("verify", "relu.py", "wrong.cpp", code=1)
        self.assertEqual(verdict["verdict"], "wrong_output")
        self.assertIn("in case 1 (x [1, 1000]): output 0", verdict["detail"])
        self.write("refuses.cpp", HAND_WRITTEN.replace("SIGN", "").replace(
            "!= 1 || output", "!= 1 || inputs[0].shape[0] == 0 || output"))
        verdict = self.run_json("verify", "relu.py", "refuses.cpp", code=1)
        self.assertEqual(verdict["verdict"], "crashed")
        self.assertIn("in case 2 (x [0, 1000])", verdict["detail"])

    def test_a_search_finds_one_source_for_all_cases_and_the_module_runs_each(self) -> None:
        self.write("norm.py", NORM)
        result = self.run_json(
            "optimize", "norm.py", "--steps", 3, "--seed", 1, "--out", "best.cpp", timeout=900
        )
        self.assertEqual(result["verdict"], "accepted", result)
        cases = result["cases"]
        self.assertEqual([c["shapes"] for c in cases], ["x [96, 64]", "x [0, 64]"])
        self.assertTrue(all(c["counted"] for c in cases), "the sum over no rows is an output too")
        launch, expected = 2000, 1.0
        for case in cases:
            self.assertGreater(case["time_ns"], 0)
            expected *= max(case["baseline_ns"]["eager"], launch) / max(case["time_ns"], launch)
        self.assertAlmostEqual(result["speedup_vs_eager"] / expected**0.5, 1, delta=0.01)
        source = (self.folder / "best.cpp").read_text()
        for case in range(2):
            self.assertIn(f"namespace case{case} {{", source)
        node = result["node"]
        shown = self.run_binary("graph", "show", node).stdout
        self.assertIn("x [0, 64]", shown)
        ran = self.run_binary("export", node, "--as", "module", "--out", "module")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        manifest = json.loads((self.folder / "module/manifest.json").read_text())
        self.assertEqual(len(manifest["cases"]), 2)
        script = self.write(
            "use.py",
            """
            import sys, warnings
            import torch
            sys.path.insert(0, "module")
            import problem_norm as module
            new = module.ModelNew(*module.get_init_inputs())
            old = module.Model(*module.get_init_inputs())
            old.load_state_dict(new.state_dict())
            calls = []
            run = module._run
            module._run = lambda case, tensors: calls.append(case) or run(case, tensors)
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("error")
                for rows in (96, 0, 96):
                    x = torch.randn(rows, 64)
                    for mine, theirs in zip(new(x), old(x), strict=True):
                        assert mine.shape == theirs.shape
                        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
            assert [module.CASES.index(case) for case in calls] == [0, 1, 0]
            with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                x = torch.randn(5, 64)
                torch.testing.assert_close(new(x), old(x))
            assert len(caught) == 1, "an unproved shape must warn once and fall back"
            assert "[96, 64]; [0, 64]" in str(caught[0].message), caught[0].message
            assert len(calls) == 3
        """,
        )
        used = subprocess.run([PYTHON, script], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(used.returncode, 0, used.stderr)

    def test_cases_that_change_more_than_shapes_are_refused_with_a_sentence(self) -> None:
        self.write(
            "typed.py", RELU + "def get_input_cases():\n    return [[torch.ones(3).double()]]\n"
        )
        self.write("good.cpp", HAND_WRITTEN.replace("SIGN", ""))
        self.assert_refused(
            self.run_binary("verify", "typed.py", "good.cpp"),
            "get_input_cases()[0] has the type float64",
            "a case may change shapes only",
        )


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
