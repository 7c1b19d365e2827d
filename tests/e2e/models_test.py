# SPDX-License-Identifier: Apache-2.0
"""Language models on the real binary: commands and mailboxes answer, runs end well, and replay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from harness import BINARY, PYTHON, RELU, CachedCase, main

# Answers a prompt on standard input with a kernel, another one each time; talks first when TALK.
ANSWER = '''
import pathlib, sys
counter = pathlib.Path(FOLDER, "calls")
calls = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(calls + 1))
prompt = sys.stdin.read()
if calls >= DIES_AFTER:
    sys.exit("the line is dead")
if TALK and calls == 0:
    print("I would rather talk about it.")
    sys.exit(0)
parts = 3 + calls
print(f"""Split into {parts} parts.
```cpp
#include "kernelevolve/kernel.h"

struct Work {{ const float* x; float* y; int64_t n; }};

static void part(int64_t i, void* arg) {{
  const Work* work = static_cast<const Work*>(arg);
  const int64_t from = work->n * i / {parts}, to = work->n * (i + 1) / {parts};
  for (int64_t k = from; k < to; ++k) work->y[k] = work->x[k] <= 0 ? 0.0f : work->x[k];
}}

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
                         int32_t output_count, ke_context* context) {{
  if (input_count != 1 || output_count != 1) return 1;
  Work work = {{static_cast<const float*>(inputs[0].data),
               static_cast<float*>(outputs[0].data), 1}};
  for (int32_t d = 0; d < inputs[0].ndim; ++d) work.n *= inputs[0].shape[d];
  context->parallel_for(context->pool, {parts}, part, &work);
  return 0;
}}
```
""")
'''


# Searches, compiles something broken, reads a document, and answers: by what was said so far.
CURIOUS = '''
import pathlib, re, sys
prompt = sys.stdin.read()
used = prompt.count("\\nThe tool `")
pathlib.Path(FOLDER, f"prompt{used}.md").write_text(prompt)
kernel = """#include "kernelevolve/kernel.h"

extern "C" int ke_launch(const ke_tensor* inputs, int32_t input_count, ke_tensor* outputs,
                         int32_t output_count, ke_context* context) {
  if (input_count != 1 || output_count != 1 || context == nullptr) return 1;
  const float* x = static_cast<const float*>(inputs[0].data);
  float* y = static_cast<float*>(outputs[0].data);
  int64_t n = 1;
  for (int32_t d = 0; d < inputs[0].ndim; ++d) n *= inputs[0].shape[d];
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] <= 0 ? 0.0f : x[k];
  return 0;
}
"""
if used == 0:
    print('```tool\\n{"tool": "search", "query": "elementwise vector loads"}\\n```')
elif used == 1:
    print('```tool\\n{"tool": "compile"}\\n```\\n```cpp')
    print(kernel.replace("return 0;", "return missing_name;") + "```")
elif used == 2:
    path = re.search(r"^([a-z_]+/[-a-z0-9]+[.]md): ", prompt, re.MULTILINE).group(1)
    print('```tool\\n{"tool": "read", "path": "' + path + '"}\\n```')
elif used == 3:
    print('```tool\\n{"tool": "profile"}\\n```\\n```cpp\\n' + kernel + "```")
else:
    print("One plain loop.\\n```cpp\\n" + kernel + "```")
'''


class Models(CachedCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU)

    def script(self, talk: bool = False, dies_after: int = 1000) -> str:
        text = ANSWER.replace("FOLDER", repr(str(self.folder)))
        text = text.replace("TALK", repr(talk)).replace("DIES_AFTER", str(dies_after))
        path = self.folder / "answer.py"
        path.write_text(text)
        return f"exec:{sys.executable} {path}"

    def exported(self) -> dict:
        ran = self.run_binary("graph", "export", "--out", "run.json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads((self.folder / "run.json").read_text())

    def test_a_command_writes_kernels_and_the_run_plays_again(self) -> None:
        result = self.run_json(
            "optimize", "relu.py", "--steps", 6, "--seed", 1, "--model", self.script(talk=True),
            "--proposers", "synth,llm", "--model-calls", 1, "--past-floor",
        )  # fmt: skip
        self.assertEqual(result["verdict"], "accepted")
        models = result["models"]
        self.assertGreaterEqual(models["accepted"], 1)
        self.assertGreaterEqual(models["calls"], 2)
        self.assertGreater(models["tokens_per_accepted"], 0)
        run = self.exported()
        follow_ups = [prompt for prompt in run["prompts"] if prompt["follows"]]
        self.assertEqual(len(follow_ups), 1, "the answer without a kernel is followed up")
        written = [node for node in run["nodes"] if node["prompt"]]
        self.assertGreaterEqual(len(written), 1)
        sent = self.run_binary("prompt", written[0]["node"])
        self.assertEqual(sent.returncode, 0, sent.stderr)
        self.assertIn("ke_launch", sent.stdout)
        others = [node for node in run["nodes"] if not node["prompt"]]
        would = self.run_binary("prompt", others[0]["node"])
        self.assertEqual(would.returncode, 0, would.stderr)
        self.assertIn("ke_launch", would.stdout)

        replayed = self.run_json("replay", "run.json", "--re-judge")
        self.assertEqual(replayed["nodes"], len(run["nodes"]))
        self.assertEqual(replayed["other_verdicts"], [])
        about = {key: value for key, value in run["description"].items() if key != "models"}
        self.assertNotIn(str(self.folder), json.dumps(about), "models are named as the user did")

        run["prompts"][0]["digest"] = "0" * 64
        run["prompts"][0]["request"]["messages"][0]["text"] = "Another question."
        (self.folder / "other.json").write_text(json.dumps(run))
        self.assert_refused(self.run_binary("replay", "other.json"), "prompt", "differs from line")

    def test_a_model_uses_tools_before_it_writes_its_kernel(self) -> None:
        path = self.folder / "curious.py"
        path.write_text(CURIOUS.replace("FOLDER", repr(str(self.folder))))
        result = self.run_json(
            "optimize", "relu.py", "--steps", 1, "--seed", 1, "--proposers", "llm",
            "--model", f"exec:{sys.executable} {path}", "--model-calls", 1,
        )  # fmt: skip
        self.assertEqual(result["verdict"], "accepted")
        self.assertEqual(result["models"]["calls"], 5)
        said = [(self.folder / f"prompt{used}.md").read_text() for used in range(5)]
        self.assertIn("# Tools", said[0])
        self.assertRegex(said[1], r"(?m)^[a-z_]+/[-a-z0-9]+\.md: ")
        self.assertIn("missing_name", said[2])
        self.assertIn("compile_error: it does not compile", said[2])
        self.assertTrue(said[3].startswith(said[2].rstrip()), "the conversation goes on")
        self.assertIn("cycles_per_iteration: ", said[4])
        self.assertNotIn(str(self.folder), said[4])
        run = self.exported()
        self.assertEqual([prompt["ground"]["tool"]["tool"] for prompt in run["prompts"][1:]],
                         ["search", "compile", "read", "profile"])  # fmt: skip
        # Of two answers the first is an early block: then the whole answer holds nothing new.
        faults = [prompt["answers"][0]["fault"] for prompt in run["prompts"]]
        self.assertEqual(faults, ["asked for search", "asked for compile", "asked for read",
                                  "asked for profile", ""])  # fmt: skip
        self.assertEqual(len(run["nodes"]), 1, "what was compiled only is no node")
        replayed = self.run_json("replay", "run.json")
        self.assertEqual(replayed["prompts"], 5)

    def test_a_mailbox_is_answered_by_hand(self) -> None:
        self.script()
        process = subprocess.Popen(
            [BINARY, "optimize", "relu.py", "--steps", "2", "--seed", "1", "--json",
             "--model", "mailbox:box", "--proposers", "llm", "--model-calls", "1"],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=PYTHON),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        answered = 0
        deadline = time.monotonic() + 240
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            listed = self.run_binary("mailbox", "box", "list")
            waiting = [line.split()[0] for line in listed.stdout.splitlines() if "waiting" in line]
            self.assertEqual(len(waiting), listed.stdout.count("  waiting  llm  "), listed.stdout)
            for number in waiting:
                shown = self.run_binary("mailbox", "box", "show", number)
                self.assertEqual(shown.stderr, f"prompt {number} asks llm\n")
                self.assertIn("ke_launch", shown.stdout)
                answer = subprocess.run(
                    [sys.executable, self.folder / "answer.py"],
                    input=shown.stdout, capture_output=True, text=True, check=True,
                )  # fmt: skip
                self.write("answer.md", answer.stdout)
                ran = self.run_binary("mailbox", "box", "answer", number, "answer.md")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                answered += 1
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertGreaterEqual(answered, 2)
        self.assertEqual(json.loads(output)["models"]["accepted"], 2)

    def test_a_model_that_dies_leaves_the_run_to_the_embedded_proposers(self) -> None:
        ran = self.run_binary(
            "optimize", "relu.py", "--steps", 8, "--seed", 1, "--json", "--budget-calls", 3,
            "--model", self.script(dies_after=1), "--proposers", "synth,tune,llm",
            "--model-calls", 1,
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        result = json.loads(ran.stdout)
        self.assertEqual(result["verdict"], "accepted")
        self.assertLessEqual(result["models"]["calls"], 4)
        self.assertEqual(ran.stderr.count("the embedded proposers go on"), 1, ran.stderr)

    def test_what_is_wrong_is_said_in_one_sentence(self) -> None:
        self.write("prices.json", "{")
        cases = [
            (["--model", "oracle:x"], "oracle:x"),
            (["--model", "openai"], "names no model"),
            (["--model", "openai:m"], "OPENAI_API_KEY"),
            (["--proposers", "llm"], "--model"),
            (["--model", "exec:true", "--proposers", "synth"], "llm"),
            (["--model", "exec:true", "--prices", "none.json"], "none.json"),
            (["--model", "exec:true", "--prices", "prices.json"], "price table"),
            (["--model", "exec:true", "--budget-usd", "1"], "--prices"),
            (["--sub-agents", "model"], "--model"),
            (["--model", "exec:true", "--sub-agents", "both"], "--sub-agents"),
        ]
        for arguments, word in cases:
            with self.subTest(arguments=arguments):
                ran = self.run_binary(
                    "optimize", "relu.py", *arguments, OPENAI_API_KEY="", OPENAI_BASE_URL=""
                )
                self.assert_refused(ran, word)
        self.write("broken.json", '{"schema": 2}')
        self.assert_refused(self.run_binary("replay", "broken.json"), "lacks")
        self.assert_refused(self.run_binary("replay", "none.json"), "none.json")
        self.assert_refused(self.run_binary("mailbox", "nowhere"), "nowhere")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
