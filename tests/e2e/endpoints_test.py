# SPDX-License-Identifier: Apache-2.0
"""Model endpoints on the real binary: one that dies in the middle, one that costs too much, and a
key that is nowhere but in the request's header."""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import HAND_WRITTEN, RELU, CachedCase, main

KEY = "sk-test-7f3a9c"
DIAGNOSIS = {
    "bound": "memory",
    "evidence": ["It reads and writes everything once."],
    "tried": [],
    "directives": ["Write past the cache, because nobody reads it back."],
}
PRICES = '{"models": {"openai:writer": {"input": 10.0, "output": 40.0}}}'


class Endpoint(ThreadingHTTPServer):
    """Speaks chat completions, streamed; writes another relu each time; dead after some calls."""

    daemon_threads = True

    def __init__(self, dies_after: int = 1000) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.dies_after = dies_after
        self.calls = 0
        self.asked: list[str] = []
        self.keys: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.keys.add(self.headers.get("Authorization", ""))
        self.server.calls += 1
        if self.server.calls > self.server.dies_after:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for part in self.parts(json.loads(body)["messages"]):
            self.event({"choices": [{"index": 0, "delta": {"content": part}}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 4000, "completion_tokens": 500, "total_tokens": 4500}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def parts(self, messages: list[dict]) -> tuple[str, ...]:
        """A diagnosis, a search and then a choice of what it found, or a kernel."""
        text = json.dumps(messages)
        if "You keep the memory" in text:
            self.server.asked.append("context memory")
            return ("```json\n", json.dumps(DIAGNOSIS), "\n```\n")
        if "You choose what is read" in text:
            self.server.asked.append("deep search")
            found = re.search(r"Your searches found:.*?(guidance/[-a-z0-9]+[.]md): ", text)
            if not found:
                searches = {"searches": [{"regex": "stream(ed|ing)"}]}
                return ("```json\n", json.dumps(searches), "\n```\n")
            chosen = {"path": found.group(1), "reason": "writes bypass the cache"}
            return ("```json\n", json.dumps({"documents": [chosen]}), "\n```\n")
        self.server.asked.append("kernel")
        source = HAND_WRITTEN.replace("SIGN ", "").replace("8", str(2 + self.server.calls))
        return ("Other parts.\n```cpp\n", source, "```\n")

    def event(self, fields: dict) -> None:
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": "writer", **fields}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

    def log_message(self, *arguments: object) -> None:
        pass


class Endpoints(CachedCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU)
        self.write("prices.json", PRICES)

    def optimize(self, endpoint: Endpoint, *arguments: object):
        ran = self.run_binary(
            "optimize", "relu.py", "--seed", 1, "--model", "openai:writer", "--json",
            "--past-floor", *arguments,
            OPENAI_API_KEY=KEY, OPENAI_BASE_URL=endpoint.url,
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(endpoint.keys, {f"Bearer {KEY}"})
        self.assertNotIn(KEY, ran.stdout + ran.stderr)
        for path in (self.folder / ".kernelevolve").rglob("*"):
            if path.is_file():
                self.assertNotIn(KEY.encode(), path.read_bytes(), path)
        return json.loads(ran.stdout), ran.stderr

    def test_an_endpoint_that_dies_leaves_the_run_to_the_embedded_proposers(self) -> None:
        endpoint = Endpoint(dies_after=2)
        result, errors = self.optimize(
            endpoint, "--steps", 10, "--proposers", "synth,tune,llm", "--model-calls", 1
        )
        self.assertEqual(result["verdict"], "accepted")
        self.assertEqual(result["models"]["accepted"], 2)
        self.assertEqual(result["steps"], 10)
        self.assertEqual(errors.count("the embedded proposers go on"), 1, errors)

    def test_a_budget_of_money_ends_the_calls_and_not_the_run(self) -> None:
        endpoint = Endpoint()
        result, errors = self.optimize(
            endpoint, "--steps", 10, "--proposers", "synth,tune,llm", "--model-calls", 1,
            "--prices", "prices.json", "--budget-usd", "0.8",
        )  # fmt: skip
        models = result["models"]
        self.assertEqual(result["steps"], 10)
        self.assertEqual(endpoint.calls, models["calls"])
        self.assertGreaterEqual(models["calls"], 1)
        # A call is made only if the longest answer could still be paid: 0.66 USD and the prompt.
        self.assertAlmostEqual(models["usd"], 0.06 * models["calls"], places=6)
        self.assertLess(models["usd"], 0.8)
        self.assertAlmostEqual(models["usd_per_accepted"], models["usd"] / models["accepted"])
        self.assertIn("budget", errors)

    def test_sub_agents_run_by_the_model_come_before_the_kernel(self) -> None:
        endpoint = Endpoint()
        result, errors = self.optimize(
            endpoint, "--steps", 2, "--proposers", "llm", "--model-calls", 1,
            "--sub-agents", "model", "--prices", "prices.json",
        )  # fmt: skip
        conversation = ["context memory", "deep search", "deep search", "kernel"]
        self.assertEqual(endpoint.asked, 2 * conversation)
        self.assertNotIn("stands in", errors)
        models = result["models"]
        self.assertEqual((models["calls"], models["accepted"], result["steps"]), (8, 2, 2))
        self.assertEqual(models["sub_agents"]["calls"], 6)
        self.assertEqual(models["sub_agents"]["tokens"], 6 * 4500)
        self.assertAlmostEqual(models["sub_agents"]["usd"], 6 * 0.06, places=6)
        ran = self.run_binary("graph", "export", "--out", "run.json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        run = json.loads((self.folder / "run.json").read_text())
        self.assertEqual(run["config"]["models"]["sub_agents"], "model")
        proposals = [prompt for prompt in run["prompts"] if prompt["style"] == "llm"]
        self.assertEqual(len(proposals), 2)
        for prompt in proposals:
            text = prompt["request"]["messages"][0]["text"]
            self.assertIn("Write past the cache", text)
            self.assertIn("because writes bypass the cache", text)
            self.assertEqual(len(prompt["ground"]["documents"]), 1)
        self.assertEqual(self.run_json("replay", "run.json")["prompts"], 8)
        answer = run["prompts"][0]["answers"][0]["outcome"]["answer"]
        answer["text"] = answer["text"].replace("Write past", "Write into")
        (self.folder / "other.json").write_text(json.dumps(run))
        refused = self.run_binary("replay", "other.json")
        self.assert_refused(refused, "llm/deep_search", "differs from line")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
