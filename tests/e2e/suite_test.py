# SPDX-License-Identifier: Apache-2.0
"""Many problems on the real binary: several jobs, a problem that fails, going on, the report."""

from __future__ import annotations

import json

from harness import RELU, CachedCase, main

BROKEN = RELU.replace("return torch.relu(x)", "raise ValueError('no such luck')")


class Suite(CachedCase):
    def rows(self) -> list[dict]:
        return [json.loads(line) for line in (self.folder / "out.jsonl").read_text().splitlines()]

    def test_jobs_share_the_problems_and_the_report_names_each(self) -> None:
        for number in (1, 2, 10):
            self.write(f"all/level1/{number}_ReLU.py", RELU.replace("64, 1000", f"{number}, 512"))
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


if __name__ == "__main__":
    main()
