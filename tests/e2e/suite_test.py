# SPDX-License-Identifier: Apache-2.0
"""Many problems on the real binary: several jobs, a problem that fails, going on, the report."""

from __future__ import annotations

import json
import shutil

from harness import RELU, CachedCase, main

BROKEN = RELU.replace("return torch.relu(x)", "raise ValueError('no such luck')")


def relu(shape: str) -> str:
    """Large enough to be timed beside others."""
    return RELU.replace("64, 1000", shape)


class Suite(CachedCase):
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def test_jobs_share_the_problems_and_the_report_names_each(self) -> None:
        for number in (1, 2, 10):
            self.write(f"all/level1/{number}_ReLU.py", relu(f"{300 + number}, 2000"))
        self.write("all/level1/3_Broken.py", BROKEN)
        command = ["suite", "run", "all", "--jobs", 2, "--steps", 1, "--out", "out.jsonl"]
        ran = self.run_binary(*command)
        self.assertEqual(ran.returncode, 1, ran.stderr)
        found = {row["problem"]: row for row in self.rows()}
        self.assertEqual(len(found), 4)
        self.assertIn("no such luck", found["level1/3_Broken"]["error"])
        runs = [found[f"level1/{n}_ReLU"]["run"] for n in (1, 2, 10)]
        self.assertEqual(len(set(runs)), 3, "each problem was searched once, in a run of its own")
        self.assertIn("4 of 4", ran.stderr)

        self.assert_refused(self.run_binary(*command), "already holds results")
        again = self.run_binary(*command, "--resume")
        self.assertEqual(again.returncode, 1, again.stderr)
        later = {row["problem"]: row for row in self.rows()}
        self.assertEqual([later[f"level1/{n}_ReLU"]["run"] for n in (1, 2, 10)], runs)

        report = self.run_binary("suite", "report", "out.jsonl")
        self.assertEqual(report.returncode, 0, report.stderr)
        lines = [line.split()[0] for line in report.stdout.splitlines() if "level1/" in line]
        names = ("1_ReLU", "2_ReLU", "3_Broken", "10_ReLU")
        self.assertEqual(lines[:4], [f"level1/{name}" for name in names])
        self.assertIn("level1: 3 of 4 accepted", report.stdout)

    def test_kernels_are_kept_for_another_workspace_and_judged_anew(self) -> None:
        for number in (1, 2):
            self.write(f"kept/level1/{number}_ReLU.py", relu(f"{300 + number}, 2000"))
        first = self.run_binary("suite", "run", "kept", "--steps", 2, "--out", "found.jsonl")
        self.assertEqual(first.returncode, 0, first.stderr)
        for _ in range(2):  # again: nothing is doubled
            keep = self.run_binary("suite", "keep", "--count", 1, "--out", "kept.jsonl")
            self.assertEqual(keep.stdout, "kept.jsonl holds 2 kernels.\n", keep.stderr)
        kept = {
            row["problem"]: row
            for row in map(json.loads, (self.folder / "kept.jsonl").read_text().splitlines())
        }
        self.write("kept/level1/2_ReLU.py", relu("302, 2001"))  # another problem
        # Only its experience is to be fresh: the machine is measured and compiled for.
        shutil.copytree(self.folder / ".kernelevolve/cache", self.folder / "fresh/cache")

        command = ["suite", "run", "kept", "--kernels", "kept.jsonl", "--workspace", "fresh"]
        again = self.run_binary(*command, "--judge-only", "--out", "judged.jsonl")
        self.assertEqual(again.returncode, 1, again.stderr)
        rows = {
            row["problem"]: row
            for row in map(json.loads, (self.folder / "judged.jsonl").read_text().splitlines())
        }
        judged = rows["level1/1_ReLU"]
        found = (judged["verdict"], judged["steps"], judged["evaluated"])
        self.assertEqual(found, ("accepted", 1, 1))
        self.assertIn("no kernel was kept of this text", rows["level1/2_ReLU"]["error"])
        source = (self.folder / judged["kernel_path"]).read_text()
        self.assertEqual(source, kept["level1/1_ReLU"]["source"])

        # Once more in the same workspace: judged again, not looked up.
        once_more = self.run_binary(
            *command, "--judge-only", "--select", "level1/1_*", "--out", "more.jsonl"
        )
        self.assertEqual(once_more.returncode, 0, once_more.stderr)
        self.assertEqual(json.loads((self.folder / "more.jsonl").read_text())["evaluated"], 1)

        # A search begins with it and goes on.
        on = self.run_binary(*command, "--select", "level1/1_*", "--steps", 3, "--out", "on.jsonl")
        self.assertEqual(on.returncode, 0, on.stderr)
        self.assertGreater(json.loads((self.folder / "on.jsonl").read_text())["steps"], 1)

    def test_kept_kernels_that_are_none_are_refused(self) -> None:
        self.write("few/level1/1_ReLU.py", RELU)
        self.write("bad.jsonl", '{"problem": "level1/1_ReLU"}\n')
        self.write("empty.jsonl", "")
        run = ["suite", "run", "few", "--workspace", "unmade", "--out", "none.jsonl"]
        self.assert_refused(self.run_binary(*run, "--kernels", "gone.jsonl"), "gone.jsonl")
        self.assert_refused(self.run_binary(*run, "--kernels", "bad.jsonl"), "line 1")
        self.assert_refused(self.run_binary(*run, "--judge-only"), "--kernels")
        self.assert_refused(
            self.run_binary(*run, "--judge-only", "--kernels", "empty.jsonl"), "no kernel for x86"
        )
        self.assertFalse((self.folder / "unmade").exists())
        keep = self.run_binary("suite", "keep", "--workspace", "unmade", "--out", "kept.jsonl")
        self.assert_refused(keep, "unmade")


if __name__ == "__main__":
    main()
