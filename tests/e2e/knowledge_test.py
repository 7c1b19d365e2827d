# SPDX-License-Identifier: Apache-2.0
"""The knowledge base on the real binary: search, show, add, review, and bad input."""

from __future__ import annotations

import json

from harness import Case, main

NOTE = """\
---
title: Zebra stripes in the output of our accelerator
targets: [any]
topics: [zebra, stripes]
bottleneck: [correctness]
---
Every second row is stale: the double buffer is read before it is filled.
"""

SKILL = """\
---
title: Lesson, quagga 1 to 2 is faster
targets: [any]
topics: [skill, quagga]
status: proposed
evidence: [problem=relu digest=0a1b run=1 from=2 to=3 gain=1.5 low=1.4 high=1.6]
---
Changing quagga from 1 to 2 made the kernel faster.
"""


class Knowledge(Case):
    def paths(self, *arguments: object) -> list[str]:
        found = self.run_json("kb", "search", *arguments)
        return [row["path"] for row in found["results"]]

    def test_search_finds_what_an_engineer_asks_for(self) -> None:
        found = self.paths("softmax reads each row three times")
        self.assertIn("guidance/softmax-online.md", found)
        self.assertIn(
            "hardware/x86/tlb-huge-pages.md", self.paths("page walks", "--target", "x86")[:3]
        )
        for row in self.run_json("kb", "search", "registers", "--target", "x86")["results"]:
            self.assertTrue({"any", "x86"} & set(row["targets"]), row)
        self.assertEqual(len(self.paths("memory", "--limit", 2)), 2)
        ran = self.run_binary("kb", "search", "how do I sum rows")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("guidance/reductions-rows.md", ran.stdout)

    def test_exact_searches(self) -> None:
        lines = self.run_json("kb", "search", "ke_launch", "--in", "text")["results"]
        self.assertTrue(all("ke_launch" in row["text"] for row in lines))
        self.assertTrue(self.paths("tlb", "--in", "path"))
        self.assertTrue(self.paths("huge.pages?", "--in", "regex"))
        self.assertEqual(self.run_binary("kb", "search", "xyzzyplugh").returncode, 1)

    def test_hostile_queries_are_words(self) -> None:
        for query in ['"', "title: NEAR(", "a' OR 1=1; --", "sum* AND (", "{body}: x"]:
            with self.subTest(query=query):
                ran = self.run_binary("kb", "search", query)
                self.assertIn(ran.returncode, (0, 1), ran.stderr)
                self.assertEqual(ran.stderr, "")

    def test_show_prints_the_document(self) -> None:
        ran = self.run_binary("kb", "show", "index.md")
        self.assertEqual(ran.returncode, 0)
        self.assertTrue(ran.stdout.startswith("---\ntitle: "))
        self.assert_refused(self.run_binary("kb", "show", "guidance/scan.md"), "guidance/scans.md")

    def test_add_makes_a_document_findable_in_its_workspace(self) -> None:
        self.write("zebra.md", NOTE)
        self.assertEqual(self.run_binary("kb", "add", "zebra.md").returncode, 0)
        self.assertEqual(self.paths("zebra stripes")[0], "zebra.md")
        elsewhere = self.run_binary("kb", "search", "zebra", "--workspace", "elsewhere")
        self.assertNotIn("zebra.md", elsewhere.stdout)
        self.assertEqual(self.run_binary("kb", "add", "zebra.md").returncode, 0)
        self.write("zebra.md", NOTE + "More.\n")
        self.assert_refused(self.run_binary("kb", "add", "zebra.md"), "zebra.md", "differs")
        self.assertEqual((self.folder / ".kernelevolve/knowledge/zebra.md").read_text(), NOTE)

    def test_a_users_document_replaces_a_bundled_one(self) -> None:
        self.write(".kernelevolve/knowledge/guidance/scans.md", NOTE)
        shown = self.run_binary("kb", "show", "guidance/scans.md")
        self.assertEqual(shown.stdout, NOTE)

    def test_a_broken_document_is_skipped_with_a_sentence(self) -> None:
        self.write(".kernelevolve/knowledge/broken.md", "---\ntitle: A\nbottleneck: [slow]\n---\n")
        ran = self.run_binary("kb", "search", "softmax")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("broken.md:3: ", ran.stderr)

    def test_review_decides_what_searches_find(self) -> None:
        self.write(".kernelevolve/knowledge/skills/0a1b2c.md", SKILL)
        self.assertNotIn("skills/0a1b2c.md", self.run_binary("kb", "search", "quagga").stdout)
        proposed = self.run_json("kb", "review")["proposed"]
        self.assertEqual([row["id"] for row in proposed], ["0a1b2c"])
        self.assertEqual(self.run_binary("kb", "review", "--accept", "0a1b2c").returncode, 0)
        found = self.run_binary("kb", "search", "quagga")
        self.assertIn("skills/0a1b2c.md", found.stdout)
        self.assertIn("learnt from problem=relu digest=0a1b run=1", found.stdout)
        self.assertEqual(self.run_json("kb", "review")["proposed"], [])
        self.assertEqual(self.run_binary("kb", "review", "--reject", "0a1b2c").returncode, 0)
        self.assertNotIn("skills/0a1b2c.md", self.run_binary("kb", "search", "quagga").stdout)

    def test_bad_input(self) -> None:
        self.write("bad.md", "# no front matter\n")
        self.write("note.txt", NOTE)
        for arguments, word in [
            (["kb"], "subcommand"),
            (["kb", "search"], "query"),
            (["kb", "search", "x", "--limit", "0"], "limit"),
            (["kb", "search", "x", "--bottleneck", "slow"], "slow"),
            (["kb", "search", "(", "--in", "regex"], "regular expression"),
            (["kb", "show", "nowhere.md"], "nowhere.md"),
            (["kb", "add", "absent.md"], "absent.md"),
            (["kb", "add", "bad.md"], "bad.md:1"),
            (["kb", "add", "note.txt"], ".md"),
            (["kb", "review", "--accept", "nothing"], "nothing"),
            (["kb", "review", "--accept", "../../x"], "../../x"),
            (["kb", "review", "--accept", "a", "--reject", "b"], "reject"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_binary(*arguments), word)
        self.assertFalse((self.folder / ".kernelevolve").exists())

    def test_help_names_every_command(self) -> None:
        text = self.run_binary("kb", "--help").stdout
        for word in ("search", "show", "add", "review"):
            self.assertIn(word, text)


class Lessons(Case):
    def test_a_run_proposes_what_it_can_show(self) -> None:
        self.write("softmax.py", SOFTMAX)
        self.run_json("optimize", "softmax.py", "--steps", 12, "--seed", 3, code=0, timeout=900)
        for row in self.run_json("kb", "review")["proposed"]:
            shown = json.loads(self.run_binary("kb", "show", row["path"], "--json").stdout)
            self.assertEqual(shown["status"], "proposed")
            for evidence in shown["evidence"]:
                fields = dict(part.split("=") for part in evidence.split() if "=" in part)
                self.assertGreater(float(fields["low"]), 1)
                for node in (fields["from"], fields["to"]):
                    self.assertEqual(self.run_binary("graph", "show", node).returncode, 0)


SOFTMAX = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn(512, 4096)]

def get_init_inputs():
    return []
"""

if __name__ == "__main__":
    main()
