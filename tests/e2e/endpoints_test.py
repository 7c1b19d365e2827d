# SPDX-License-Identifier: Apache-2.0
"""Model endpoints on the real binary: one that dies in the middle, one that costs too much, and a
key that is nowhere but in the request's header."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import HAND_WRITTEN, RELU, CachedCase, main

KEY = "sk-test-7f3a9c"
PRICES = '{"models": {"openai:writer": {"input": 10.0, "output": 40.0}}}'


class Endpoint(ThreadingHTTPServer):
    """Speaks chat completions, streamed; writes another relu each time; dead after some calls."""

    daemon_threads = True

    def __init__(self, dies_after: int = 1000) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.dies_after = dies_after
        self.calls = 0
        self.keys: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.keys.add(self.headers.get("Authorization", ""))
        self.server.calls += 1
        if self.server.calls > self.server.dies_after:
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        source = HAND_WRITTEN.replace("SIGN ", "").replace("8", str(2 + self.server.calls))
        for part in ("Other parts.\n```cpp\n", source, "```\n"):
            self.event({"choices": [{"index": 0, "delta": {"content": part}}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {"prompt_tokens": 4000, "completion_tokens": 500, "total_tokens": 4500}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

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


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
