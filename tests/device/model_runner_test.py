# SPDX-License-Identifier: Apache-2.0
"""The model runner as a process, with the driver played on the processor.

Most are forked from the test, as a zygote does it: importing PyTorch anew takes seconds. That
inputs cannot be written is the mapping's doing; here a write is a fault that ends the process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from with_torch import SOURCE, torch

FOLDER = os.path.join(SOURCE, "py", "kernelevolve")
sys.path.insert(0, FOLDER)
from device_memory import DeviceTensorMemory, Driver  # noqa: E402
from model_runner import Runner  # noqa: E402

torch.set_num_threads(1)  # a pool of threads would not survive a fork
OPEN, BIND, LOAD, RUN, LOAD_MODULE, COLLECT, STAIN = range(1, 8)
DONE, NO_DEVICE, BAD_CODE, NO_KERNEL, BAD_LAUNCH, FAULT, NO_MEMORY, BAD_RESULT = range(8)
EXCEPTION, MISUNDERSTOOD = 8, 9

PROBLEM = """
import torch
class Inner(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))
        self.register_buffer("shift", torch.rand(width))
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Sequential(Inner(width))
    def forward(self, x, factor, more):
        inner = self.inner[0]
        return (x * inner.weight + inner.shift) * factor + more["y"]
def get_inputs():
    return [torch.rand(3, 4), 2.0, {"y": torch.rand(4), "name": "z"}]
def get_init_inputs():
    return [4]
"""
STATE = PROBLEM[: PROBLEM.index("class Model")]
RIGHT = STATE + """
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Sequential(Inner(width))
    def forward(self, x, factor, more):
        assert more["name"] == "z"
        inner = self.inner[0]
        return (x * inner.weight + inner.shift) * factor + more["y"]
"""
SPECS = [
    {"name": "x", "kind": "argument", "dtype": "float32", "shape": [3, 4], "strides": [4, 1]},
    {"name": "more.y", "kind": "argument", "dtype": "float32", "shape": [4], "strides": [1]},
    {"name": "inner.0.weight", "kind": "parameter", "dtype": "float32", "shape": [4],
     "strides": [1]},
    {"name": "inner.0.shift", "kind": "buffer", "dtype": "float32", "shape": [4], "strides": [1]},
]


def returning(expression: str, before: str = "") -> str:
    """A candidate for the problem that returns something else."""
    head = RIGHT[: RIGHT.index("        assert more")]
    return before + head + f"        return {expression}\n"


class ModelRunner(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(lambda: self.wait())
        self.driver = Driver.load(os.environ["KE_FAKE_CUDA"], on_processor=True)
        self.generator = torch.Generator().manual_seed(1)
        self.memories: dict[int, list[DeviceTensorMemory]] = {}
        self.info: dict[str, Any] = {
            "inputs": SPECS, "outputs": [{"dtype": "float32", "shape": [3, 4]}], "device": "cpu",
        }
        self.start()

    def start(self, **environment: str) -> None:
        if hasattr(self, "pid"):
            self.wait()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self.socket.close()
            os.environ.update(environment)
            runner = Runner(theirs.detach(), os.environ["KE_FAKE_CUDA"])
            os._exit(runner.serve())
        theirs.close()

    def wait(self) -> int:
        """How the runner ended, as subprocess has it."""
        if self.status is None:
            self.socket.close()
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status

    def tell(self, *values: int, fds: list[int] | None = None) -> tuple[int, str, list[int]]:
        """Ending, text and times that a command is answered with."""
        socket.send_fds(self.socket, [struct.pack(f"={len(values)}q", *values)], fds or [])
        reply = self.socket.recv(1 << 20)
        if not reply:
            return -1, "", []
        ending, _, text = struct.unpack("=qq512s", reply[:528])
        times = struct.unpack(f"={(len(reply) - 528) // 8}q", reply[528:])
        self.assertEqual(len(times), times[0] + 1 if times else 0)
        return ending, text.rstrip(b"\0").decode(), list(times[1:])

    def done(self, *values: int, fds: list[int] | None = None) -> list[int]:
        ending, text, times = self.tell(*values, fds=fds)
        self.assertEqual((ending, text), (DONE, ""))
        return times

    def tensors(self, slot: int) -> list[torch.Tensor]:
        specs = [*self.info["inputs"], *self.info["outputs"]]
        types = {"float32": torch.float32, "int64": torch.int64}
        return [
            memory.view(types[spec["dtype"]], spec["shape"], spec.get("strides"))
            for memory, spec in zip(self.memories[slot], specs, strict=True)
        ]

    def bind(self, slot: int = 0, seed: int = 0) -> list[torch.Tensor]:
        """A slot with random values in it; its tensors as they are seen from here."""
        sizes = []
        for spec in [*self.info["inputs"], *self.info["outputs"]]:
            width = 8 if spec["dtype"] == "int64" else 4
            sizes.append(width * int(torch.tensor(spec["shape"]).prod()))
        self.memories[slot] = [
            DeviceTensorMemory(self.driver, size, self.generator) for size in sizes
        ]
        tensors = self.tensors(slot)
        for i, tensor in enumerate(tensors):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=self.generator) + seed + i)
        values, fds, inputs = [BIND, slot, 1], [], len(self.info["inputs"])
        for i, memory in enumerate(self.memories[slot]):
            output = int(i >= inputs)
            values += [output, output, memory.offset, memory.size]
            fds.append(memory.export())
        self.done(*values, fds=fds)
        for fd in fds:
            os.close(fd)
        return tensors

    def load(self, source: str, problem: str = PROBLEM) -> tuple[int, str, list[int]]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "problem.py")
        with open(path, "w") as file:
            file.write(problem)
        info = json.dumps({**self.info, "init_inputs_problem": path})
        fds, values = [], [LOAD_MODULE]
        for text in (source.encode(), info.encode()):
            fds.append(os.memfd_create("text"))
            os.write(fds[-1], text)
            values.append(len(text))
        try:
            return self.tell(*values, fds=fds)
        finally:
            for fd in fds:
                os.close(fd)

    def begin(self, source: str, problem: str = PROBLEM) -> list[torch.Tensor]:
        self.done(OPEN, 0)
        tensors = self.bind()
        self.assertEqual(self.load(source, problem), (DONE, "", []))
        return tensors

    @staticmethod
    def expected(tensors: list[torch.Tensor]) -> torch.Tensor:
        x, y, weight, shift, _ = tensors
        return (x * weight + shift) * 2.0 + y

    def ends(self, ending: int, text: str, reply: tuple[int, str, list[int]]) -> None:
        self.assertEqual((reply[0], reply[1]), (ending, text))
        self.assertEqual(self.wait(), 1)

    # --- What is right ----------------------------------------------------------------------------

    def test_results_are_in_the_outputs_once_collected(self) -> None:
        tensors = self.begin(RIGHT)
        tensors[-1].fill_(-1)
        times = self.done(RUN, 0, 0, 1, 0)
        self.assertEqual(len(times), 1)
        self.assertTrue(bool((tensors[-1] == -1).all()), "written before anybody asked for it")
        self.done(COLLECT, 1, 0)
        self.assertTrue(torch.equal(tensors[-1], self.expected(tensors)))
        self.assertEqual(self.wait(), 0)

    def test_a_process_of_its_own(self) -> None:
        self.wait()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.socket.close)
        command = [sys.executable, os.path.join(FOLDER, "model_runner.py"), str(theirs.fileno()),
                   os.environ["KE_FAKE_CUDA"]]
        with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process:
            theirs.close()
            tensors = self.begin(RIGHT)
            self.done(RUN, 0, 0, 1, 0)
            self.done(COLLECT, 1, 0)
            self.assertTrue(torch.equal(tensors[-1], self.expected(tensors)))
            self.socket.close()
        self.assertEqual(process.returncode, 0)

    def test_each_slot_has_its_own_tensors_whenever_it_was_bound(self) -> None:
        first = self.begin(RIGHT)
        second = self.bind(1, seed=7)
        self.assertEqual(len(self.done(RUN, 0, 4096, 3, 1, 0, 1)), 3)
        self.done(COLLECT, 2, 0, 1)
        self.assertTrue(torch.equal(first[-1], self.expected(first)))
        self.assertTrue(torch.equal(second[-1], self.expected(second)))

    def test_the_next_call_sees_other_values_at_the_same_place(self) -> None:
        tensors = self.begin(RIGHT)
        self.done(RUN, 0, 0, 1, 0)
        for tensor in tensors[:-1]:
            tensor.mul_(3)
        self.done(STAIN, 0xA5)
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        self.assertTrue(torch.equal(tensors[-1], self.expected(tensors)))

    def test_a_tied_parameter_is_one_tensor(self) -> None:
        source = RIGHT.replace(
            "        self.inner = torch.nn.Sequential(Inner(width))\n",
            "        self.inner = torch.nn.Sequential(Inner(width))\n"
            "        self.again = torch.nn.Module()\n"
            "        self.again.w = self.inner[0].weight\n",
        ).replace("x * inner.weight", "x * self.again.w")
        tensors = self.begin(source)
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        self.assertTrue(torch.equal(tensors[-1], self.expected(tensors)))

    def test_state_that_forward_changes_is_its_own_and_put_back(self) -> None:
        self.info["inputs"] = [dict(spec) for spec in SPECS]
        self.info["inputs"][3]["mutated"] = True
        source = RIGHT.replace("        return", "        inner.shift.add_(1)\n        return")
        tensors = self.begin(source)
        shift = tensors[3].clone()
        for _ in range(2):
            self.done(RUN, 0, 0, 1, 0)
            self.done(COLLECT, 1, 0)
            x, y, weight, _, out = tensors
            self.assertTrue(torch.equal(out, (x * weight + (shift + 1)) * 2.0 + y))
        self.assertTrue(torch.equal(tensors[3], shift))

    def test_random_draws_follow_the_arguments(self) -> None:
        draw = {"name": "draw0", "kind": "random", "dtype": "float32", "shape": [3, 4],
                "strides": [4, 1]}
        self.info["inputs"] = [*SPECS, draw]
        tensors = self.begin(RIGHT.replace("factor, more)", "factor, more, noise)").replace(
            '+ more["y"]', "* noise"))
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        x, _, weight, shift, noise, out = tensors
        self.assertTrue(torch.equal(out, (x * weight + shift) * 2.0 * noise))

    def test_several_outputs_and_integers(self) -> None:
        self.info["outputs"] = [{"dtype": "float32", "shape": [4]},
                                {"dtype": "int64", "shape": [2]}]
        tensors = self.begin(returning('[more["y"] * 2, torch.tensor([5, 7])]'))
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        self.assertTrue(torch.equal(tensors[-2], tensors[1] * 2))
        self.assertEqual(tensors[-1].tolist(), [5, 7])

    def test_source_can_be_looked_up_as_triton_does(self) -> None:
        source = RIGHT + "import inspect\nassert 'Sequential' in inspect.getsource(ModelNew)\n"
        self.begin(source + "assert inspect.getsourcelines(ModelNew.forward)\n")

    def test_what_is_large_is_not_made_for_constants(self) -> None:
        problem = PROBLEM.replace("torch.rand(4), \"name\"", "torch.rand(2**42), \"name\"")
        self.begin(RIGHT, problem)

    def test_patches_of_torch_do_not_reach_the_runner(self) -> None:
        patch = ("import os, struct, time, torch\n"
                 "def nothing(*a, **k): raise RuntimeError('reached')\n"
                 "torch.Tensor.copy_ = struct.pack = os.close = nothing\n"
                 "time.perf_counter_ns = nothing\n")
        tensors = self.begin(patch + RIGHT)
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        self.assertTrue(torch.equal(tensors[-1], self.expected(tensors)))

    # --- What is wrong ----------------------------------------------------------------------------

    def test_bad_results(self) -> None:
        expected = "output 0 has the {}, expected {}"
        cases = [
            ("[x, x]", "ModelNew returns 2 tensors, expected 1 tensor"),
            ("None", "output 0 is a NoneType, expected a plain tensor"),
            ("x.tolist()", "ModelNew returns 3 tensors, expected 1 tensor"),
            ("x[:2]", expected.format("shape [2, 4]", "[3, 4]")),
            ("x.half()", expected.format("dtype float16", "float32")),
            ("x.to('meta')", expected.format("device meta", "cpu")),
            ("self.inner[0].weight", "output 0 is a Parameter, expected a plain tensor"),
            ("torch.Tensor._make_subclass(type('Lazy', (torch.Tensor,), {}), x)",
             "output 0 is a Lazy, expected a plain tensor"),
            ("torch._neg_view(x)", "output 0 is not a plain dense tensor"),
            ("x.to_sparse()", "output 0 is not a plain dense tensor"),
        ]
        for expression, text in cases:
            with self.subTest(expression):
                self.start()
                self.begin(returning(expression))
                self.ends(BAD_RESULT, text, self.tell(RUN, 0, 0, 1, 0))

    def test_a_result_that_goes_bad_later_is_noticed(self) -> None:
        self.begin(returning("x if count < 2 else x[:1]", "count = 0\n").replace(
            "        return", "        global count\n        count += 1\n        return"))
        self.done(RUN, 0, 0, 1, 0)
        self.done(COLLECT, 1, 0)
        self.done(RUN, 0, 0, 1, 0)
        self.ends(BAD_RESULT, "output 0 has the shape [1, 4], expected [3, 4]",
                  self.tell(COLLECT, 1, 0))

    def test_exceptions(self) -> None:
        self.begin(returning("1 / 0"))
        line = RIGHT[: RIGHT.index("        assert more")].count("\n") + 1
        self.ends(EXCEPTION, f"ZeroDivisionError during forward() (line {line}): division by zero",
                  self.tell(RUN, 0, 0, 1, 0))
        for source, text in [
            ("raise ValueError('a\\nb')", "ValueError during import (line 1): a b"),
            ("import sys; sys.exit(0)", "SystemExit during import (line 1): 0"),
            (RIGHT.replace("super().__init__()\n        self.inner", "self.inner"), None),
        ]:
            with self.subTest(source):
                self.start()
                self.done(OPEN, 0)
                self.bind()
                ending, found, _ = self.load(source)
                self.assertEqual(ending, EXCEPTION)
                if text is not None:
                    self.assertEqual(found, text)
                self.assertNotIn("\n", found)

    def test_bad_code(self) -> None:
        for source, text in [
            ("x = (", "kernel.py does not parse at line 1: '(' was never closed"),
            ("ModelNew = 3", "kernel.py defines no class ModelNew"),
            ("class ModelNew:\n    def __init__(self, width): pass",
             "ModelNew is no torch.nn.Module"),
            (RIGHT.replace('"shift"', '"other"'), "ModelNew has no buffer 'inner.0.shift'"),
        ]:
            with self.subTest(source):
                self.start()
                self.done(OPEN, 0)
                self.bind()
                self.ends(BAD_CODE, text, self.load(source))

    def test_an_input_cannot_be_written(self) -> None:
        tensors = self.begin(returning("x.add_(1)"))
        before = tensors[0].clone()
        self.assertEqual(self.tell(RUN, 0, 0, 1, 0)[0], -1)
        self.assertEqual(self.wait(), -signal.SIGSEGV)
        self.assertTrue(torch.equal(tensors[0], before))

    def test_too_little_memory(self) -> None:
        self.begin(returning("torch.empty(2**50)"))
        ending, text, _ = self.tell(RUN, 0, 0, 1, 0)
        self.assertEqual(ending, NO_MEMORY, text)

    def test_no_device(self) -> None:
        self.start(KE_FAKE_CUDA_NO_DEVICE="1")
        self.assertEqual(self.tell(OPEN, 0)[0], NO_DEVICE)

    def test_the_processor_captures_no_graphs(self) -> None:
        self.begin(RIGHT)
        self.assertEqual(self.tell(RUN, 1, 0, 1, 0)[0], BAD_LAUNCH)

    def test_packets_that_make_no_sense(self) -> None:
        self.ends(MISUNDERSTOOD, "", self.tell(RUN, 0, 0, 0))  # before it was opened
        for values in [(RUN, 0, 0, 1, 5), (RUN, 0, 0, 9, 0), (COLLECT, 1, 0), (17,), (LOAD, 1)]:
            with self.subTest(values):
                self.start()
                self.begin(RIGHT)
                self.ends(MISUNDERSTOOD, "", self.tell(*values))


if __name__ == "__main__":
    unittest.main()
