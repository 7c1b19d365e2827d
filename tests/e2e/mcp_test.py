# SPDX-License-Identifier: Apache-2.0
"""`kernelevolve mcp` on the real binary: the public client of the protocol works with it, and raw
lines show what it says to clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

from harness import BINARY, HAND_WRITTEN, PYTHON, RELU, Case, main

RIGHT = HAND_WRITTEN.replace("SIGN", "")
WRONG = HAND_WRITTEN.replace("SIGN", "1e-3f +")
# The same in other pieces.
BETTER = RIGHT.replace("/ 8", "/ 16").replace("pool, 8,", "pool, 16,")
SAME = "// Another comment.\n" + BETTER.replace("  ", "    ")

TOOLS = {
    "bench",
    "best",
    "lineage",
    "load_problem",
    "profile",
    "read_knowledge",
    "search_knowledge",
    "submit",
    "verify",
}

LOUD = """
import os
os.write(1, b"this is no message\\n")
print("nor this", flush=True)
raise RuntimeError("this problem does not want to be read")
"""


class Agent:
    """A session of the public client, which says what tools answer as plain JSON."""

    def __init__(self, session) -> None:
        self.session = session
        self.progress: list[str] = []

    async def _told(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append(message or "")

    async def call(self, tool: str, **arguments: object) -> dict:
        result = await self.session.call_tool(tool, arguments, progress_callback=self._told)
        return result.model_dump(by_alias=True, mode="json")

    async def data(self, tool: str, **arguments: object) -> dict:
        answer = await self.call(tool, **arguments)
        if answer["isError"]:
            raise AssertionError(answer["content"])
        return answer["structuredContent"]

    async def refusal(self, tool: str, **arguments: object) -> str:
        answer = await self.call(tool, **arguments)
        if not answer["isError"]:
            raise AssertionError(answer)
        return answer["content"][0]["text"]


class PublicClient(Case):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU)

    def talk(self, conversation) -> None:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        server = StdioServerParameters(
            command=BINARY, args=["mcp"], cwd=self.folder, env=dict(os.environ, KE_PYTHON=PYTHON)
        )

        async def run() -> None:
            with open(self.folder / "stderr", "w") as errors:
                async with stdio_client(server, errlog=errors) as (reading, writing):
                    async with ClientSession(reading, writing) as session:
                        self.introduction = await session.initialize()
                        await conversation(Agent(session))

        asyncio.run(run())

    def test_an_agent_finds_a_kernel_and_its_history(self) -> None:
        self.talk(self.find_a_kernel)

    async def find_a_kernel(self, agent: Agent) -> None:
        said = self.introduction.model_dump(by_alias=True, mode="json")
        self.assertEqual(said["serverInfo"]["name"], "kernelevolve")
        listed = (await agent.session.list_tools()).model_dump(by_alias=True, mode="json")
        self.assertEqual({tool["name"] for tool in listed["tools"]}, TOOLS)

        problem = await agent.data("load_problem", problem="relu.py")
        self.assertEqual(problem["cases"][0]["inputs"][0]["shape"], [64, 1000])
        self.assertIn("relu", problem["graph"])
        self.assertIn("int ke_launch(", problem["contract"])
        self.assertGreater(problem["floor_ns"], 0)
        self.assertIn("reading the problem", " ".join(agent.progress))
        self.assertFalse((await agent.data("best", problem="relu.py"))["found"])

        found = await agent.data("search_knowledge", query="a pointwise kernel", limit=3)
        self.assertEqual(len(found["results"]), 3)
        path = found["results"][0]["path"]
        document = await agent.data("read_knowledge", path=path)
        self.assertEqual(document["title"], found["results"][0]["title"])
        listed = await agent.session.list_resources()
        self.assertIn(f"knowledge:///{path}", [str(one.uri) for one in listed.resources])

        await self.judge_kernels(agent)

    async def judge_kernels(self, agent: Agent) -> None:
        checked = await agent.call("verify", problem="relu.py", source=WRONG)
        self.assertEqual(checked["structuredContent"]["verdict"], "wrong_output")
        self.assertIn("the worst at [", checked["structuredContent"]["detail"])
        self.assertNotIn("expected", json.dumps(checked))

        profile = await agent.data("profile", problem="relu.py", source=RIGHT)
        self.assertIn("vectorized", " ".join(profile["compiler_remarks"]))

        wrong = await agent.data("submit", problem="relu.py", source=WRONG)
        self.assertEqual(wrong["verdict"], "wrong_output")
        self.assertIsNone(wrong["time_ns"])
        self.assertIsNone(wrong["fitness"])
        right = await agent.data(
            "submit", problem="relu.py", source=RIGHT, parent=wrong["node"], note="the sign"
        )
        self.assertEqual(right["verdict"], "accepted", right)
        self.assertFalse(right["confirmed"])
        self.assertIn("unconfirmed", right["note"])
        self.assertGreater(right["baseline_ns"]["eager"], 0)
        better = await agent.data(
            "submit", problem="relu.py", source=BETTER, parent=right["node"], note="16 pieces"
        )
        self.assertEqual(better["verdict"], "accepted", better)
        again = await agent.data("submit", problem="relu.py", source=SAME)
        self.assertTrue(again["known"])
        self.assertEqual(again["node"], better["node"])
        refused = await agent.refusal("submit", problem="relu.py", source=BETTER + " ", parent=999)
        self.assertIn("999", refused)

        best = await agent.data("best", problem="relu.py")
        # The times of two submissions may be the other way round: they are of different moments.
        fittest = max(right, better, key=lambda one: one["fitness"])
        self.assertEqual(best["node"], fittest["node"])
        self.assertEqual(best["source"], RIGHT if fittest is right else BETTER)
        self.assertFalse(best["confirmed"])
        lineage = (await agent.data("lineage", node=better["node"]))["nodes"]
        ids = [wrong["node"], right["node"], better["node"]]
        self.assertEqual([one["node"] for one in lineage], ids[::-1])
        self.assertEqual(lineage[0]["change"], "16 pieces")
        self.assertEqual(lineage[2]["verdict"], "wrong_output")

    def test_the_graph_keeps_what_was_submitted(self) -> None:
        async def submit(agent: Agent) -> None:
            judged = await agent.data("submit", problem="relu.py", source="int ke_launch(;")
            self.assertEqual(judged["verdict"], "compile_error")
            self.assertIn("error", judged["diagnostics"])
            self.assertNotIn("/", judged["diagnostics"].split(":")[0])

        self.talk(submit)
        self.assertIn("closed", self.run_binary("graph", "ls").stdout)
        self.assertIn("by mcp", self.run_binary("graph", "show", 1).stdout)
        self.assert_refused(self.run_binary("resume"), "handed in")


def message(method: str, number: object = None, **params: object) -> str:
    fields = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(fields if number is None else {**fields, "id": number})


HELLO = message("initialize", 0, protocolVersion="2025-03-26", capabilities={}, clientInfo={})


class Lines(Case):
    def exchange(self, *lines: str) -> list[dict]:
        """What the server writes for these lines; it ends by itself at their end."""
        ran = subprocess.run(
            [BINARY, "mcp"],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=PYTHON),
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=120,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def test_a_client_that_misbehaves_gets_errors_and_the_next_one_answers(self) -> None:
        answers = self.exchange(
            "this is no message",
            message("tools/list", 1),
            "[" + message("ping", 2) + "]",
            HELLO,
            message("tools/call", 3, name="verify", arguments={"problem": "relu.py"}),
            message("tools/call", 4, name="set_time", arguments={"time_ns": 1}),
            message("tools/call", 5, name="submit", arguments={"problem": "a", "seed": 1}),
            message("sampling/createMessage", 6),
            "x" * (9 << 20),
            message("ping", 7),
        )
        errors = [answer["error"]["code"] for answer in answers if "error" in answer]
        self.assertEqual(
            errors, [-32700, -32600, -32600, -32602, -32602, -32602, -32601, -32600]
        )
        self.assertEqual(answers[-1], {"jsonrpc": "2.0", "id": 7, "result": {}})
        self.assertEqual(answers[3]["result"]["protocolVersion"], "2025-03-26")
        self.assertFalse((self.folder / ".kernelevolve").exists())

    def test_a_hostile_problem_is_a_tools_failure_and_writes_no_message(self) -> None:
        self.write("loud.py", LOUD)
        answers = self.exchange(
            HELLO,
            message("tools/call", 1, name="load_problem", arguments={"problem": "loud.py"}),
            message("tools/call", 2, name="best", arguments={"problem": "nowhere.py"}),
        )
        self.assertEqual([answer["id"] for answer in answers], [0, 1, 2])
        for answer, word in zip(answers[1:], ("does not want", "nowhere.py")):
            self.assertTrue(answer["result"]["isError"])
            self.assertIn(word, answer["result"]["content"][0]["text"])

    def test_an_interrupt_ends_it(self) -> None:
        for ending in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [BINARY, "mcp"],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            process.stdin.write(HELLO + "\n")
            process.stdin.flush()
            self.assertIn("kernelevolve", process.stdout.readline())
            process.send_signal(ending)
            self.assertEqual(process.wait(timeout=30), 0)
            process.communicate()

    def test_bad_options_are_refused_before_anything_is_served(self) -> None:
        self.assert_refused(self.run_binary("mcp", "--target", "abacus"), "abacus")
        self.assert_refused(self.run_binary("mcp", "--json"), "--json")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    try:
        import mcp  # noqa: F401
    except ImportError:
        # Another interpreter may have it: the one that tests use for PyTorch.
        if subprocess.run([PYTHON, "-c", "import mcp"], capture_output=True).returncode != 0:
            print(f"skipped: {PYTHON} lacks the package mcp; run scripts/test.sh, which installs "
                  "it", file=sys.stderr)
            sys.exit(77)
        os.execv(PYTHON, [PYTHON, *sys.argv])
    main()
