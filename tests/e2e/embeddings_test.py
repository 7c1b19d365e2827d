# SPDX-License-Identifier: Apache-2.0
"""Embeddings on the real binary: what they find, what is kept, and what happens without them."""

from __future__ import annotations

import json
import subprocess
import sys

from harness import RELU, SOURCE, CachedCase, main

KEY = "sk-test-embed-51c7"
EQUIDS = """\
---
title: Striped equids of the savannah
targets: [x86]
topics: [quagga]
---
The quagga is an equid.
"""


class Embeddings(CachedCase):
    def setUp(self) -> None:
        super().setUp()
        self.write(".kernelevolve/knowledge/equids.md", EQUIDS)
        self.log = self.folder / "asked.jsonl"
        self.server = subprocess.Popen(
            [sys.executable, SOURCE / "tests/llm/server.py", "--log", self.log],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.stop)
        self.url = f"http://127.0.0.1:{self.server.stdout.readline().strip()}"

    def stop(self) -> None:
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()

    def run_asking(self, *arguments: object):
        ran = self.run_binary(*arguments, OPENAI_BASE_URL=self.url, OPENAI_API_KEY=KEY)
        self.assertNotIn(KEY, ran.stdout + ran.stderr)
        return ran

    def search(self, *arguments: object) -> tuple[list[str], str]:
        ran = self.run_asking("kb", "search", *arguments, "--json")
        self.assertIn(ran.returncode, (0, 1), ran.stderr)
        return [row["path"] for row in json.loads(ran.stdout)["results"]], ran.stderr

    def embedded(self) -> list[list[str]]:
        """The texts of each call for embeddings so far."""
        if not self.log.exists():
            return []
        asked = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [one["body"]["input"] for one in asked if one["path"] == "/v1/embeddings"]

    def test_they_find_by_meaning_and_each_text_is_embedded_once(self) -> None:
        self.assertEqual(self.search("zebra")[0], [])
        self.assertEqual(self.embedded(), [])
        found, errors = self.search("zebra", "--embeddings", "openai:ok")
        self.assertEqual(found[0], "equids.md")
        self.assertEqual(errors, "")
        first = self.embedded()
        self.assertEqual(first[-1], ["zebra"])
        texts = [text for batch in first for text in batch]
        self.assertEqual(sum("Striped equids" in text for text in texts), 1)
        self.assertLessEqual(max(map(len, texts)), 2000)
        # Another process: documents and this question are kept, another question is not.
        self.assertEqual(self.search("zebra", "--embeddings", "openai:ok")[0], found)
        self.assertEqual(self.embedded(), first)
        self.search("zebras", "--embeddings", "openai:ok")
        self.assertEqual(self.embedded(), [*first, ["zebras"]])
        # Filters hold.
        found, _ = self.search("zebra", "--embeddings", "openai:ok", "--target", "cuda")
        self.assertNotIn("equids.md", found)

    def test_without_an_answer_the_words_decide_and_that_is_said_once(self) -> None:
        words, _ = self.search("softmax reads each row three times")
        for model in ("404", "nan", "wrong-count"):
            with self.subTest(model=model):
                found, errors = self.search(
                    "softmax reads each row three times", "--embeddings", f"openai:{model}"
                )
                self.assertEqual(found, words)
                self.assertEqual(errors.count("searching by words alone"), 1, errors)
        self.stop()
        found, errors = self.search(
            "softmax reads each row three times", "--embeddings", "openai:ok"
        )
        self.assertEqual(found, words)
        self.assertEqual(errors.count("searching by words alone"), 1, errors)

    def test_prompts_of_a_run_draw_on_them_within_its_budget(self) -> None:
        self.write("relu.py", RELU)
        run = ["optimize", "relu.py", "--seed", 1, "--steps", 6, "--past-floor", "--json",
               "--proposers", "synth,llm", "--model", "openai:ok", "--model-calls", 1,
               "--embeddings", "openai:ok"]  # fmt: skip
        ran = self.run_asking(*run)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(any("relu" in texts[0] for texts in self.embedded()), "no prompt asked")
        self.assertEqual(json.loads(ran.stdout)["steps"], 6)
        # So few tokens pay for no document: nothing is sent, and the run goes on.
        calls = len(self.embedded())
        for path in (self.folder / ".kernelevolve/cache/embeddings").iterdir():
            path.unlink()
        ran = self.run_asking(*run, "--budget-tokens", 100)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(len(self.embedded()), calls)

    def test_bad_input(self) -> None:
        self.write("relu.py", RELU)
        for arguments, word in [
            (["kb", "search", "x", "--embeddings", "anthropic:m"], "openai:NAME"),
            (["kb", "search", "x", "--embeddings", "openai:m", "--in", "text"], "--in"),
            (["optimize", "relu.py", "--embeddings", "openai:m"], "--model"),
            (["optimize", "relu.py", "--model", "openai:m", "--embeddings", "m"], "openai:NAME"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_asking(*arguments), word)
        ran = self.run_binary(
            "kb", "search", "x", "--embeddings", "openai:m", OPENAI_API_KEY="", OPENAI_BASE_URL=""
        )
        self.assert_refused(ran, "OPENAI_API_KEY is not set")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
