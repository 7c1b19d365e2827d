# SPDX-License-Identifier: Apache-2.0
"""The judge's side of an oracle on a device, for tests: its requests, and its slots mapped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

from with_torch import SOURCE, torch

PYTHON_FOLDER = os.path.join(SOURCE, "py", "kernelevolve")
sys.path.insert(0, PYTHON_FOLDER)
from channel import Channel  # noqa: E402
from device_memory import DeviceTensorMemory, Driver  # noqa: E402
from problem import DTYPE_NAMES  # noqa: E402

DEVICE = os.environ.get("KE_TEST_DEVICE", "cpu")
DRIVER = os.environ.get("KE_TEST_DRIVER", os.environ.get("KE_FAKE_CUDA", "libcuda.so.1"))
DTYPES = {name: dtype for dtype, name in DTYPE_NAMES.items()}


def driver() -> Driver:
    if DEVICE != "cpu":
        torch.zeros(1, device=DEVICE)
    return Driver.load(DRIVER, on_processor=DEVICE == "cpu")


class Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class MappedSlot:
    """A slot as the launcher sees it, here writable throughout."""

    def __init__(
        self, number: int, memories: list[DeviceTensorMemory], specs: list[Any], input_count: int
    ) -> None:
        self.number = number
        views = [
            memory.view(DTYPES[spec["dtype"]], spec["shape"], spec["strides"])
            for memory, spec in zip(memories, specs, strict=True)
        ]
        self.inputs, self.outputs = views[:input_count], views[input_count:]
        self.output_memories = memories[input_count:]


class DeviceOracle:
    """A process of oracle.py. Close it."""

    def __init__(self, source: str, device: str = DEVICE, **options: Any) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "problem.py")
        with open(self.path, "w") as file:
            file.write(source)
        judge, theirs = socket.socketpair()
        compiling, its = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(PYTHON_FOLDER, "oracle.py"),
             str(theirs.fileno()), str(its.fileno())],
            pass_fds=[theirs.fileno(), its.fileno()],
        )
        theirs.close()
        its.close()
        self.judge = Channel(judge.detach())
        self.compiling = Channel(compiling.detach())
        self.driver = driver()
        wanted = {
            "path": self.path, "device": device, "driver": DRIVER, "seed": 11,
            "cache_dir": self.folder.name, "memory_bytes": 1 << 32, **options,
        }
        self.ask("start", options=wanted)
        self.description: dict[str, Any] = {}

    def load(self) -> DeviceOracle:
        self.description = self.ask("load")
        return self

    def __enter__(self) -> DeviceOracle:
        return self

    def __exit__(self, *_: object) -> None:
        self.judge.socket.close()
        self.compiling.socket.close()
        self.process.wait(60)
        self.folder.cleanup()

    def ask(self, do: str, channel: Channel | None = None, **fields: Any) -> dict[str, Any]:
        answer, descriptors = self.exchange(do, channel, **fields)
        for descriptor in descriptors:
            os.close(descriptor)
        return answer

    def exchange(
        self, do: str, channel: Channel | None = None, **fields: Any
    ) -> tuple[dict[str, Any], list[int]]:
        channel = channel or self.judge
        channel.send({"do": do, **fields})
        return self.answer(channel)

    def answer(self, channel: Channel) -> tuple[dict[str, Any], list[int]]:
        while True:
            message, descriptors = channel.receive()
            if "error" in message:
                raise Refused(**message["error"])
            if "ok" in message:
                return message["ok"], descriptors

    def make_slot(self) -> MappedSlot:
        answer, descriptors = self.exchange("make_slot")
        memories = []
        tensors = answer["inputs"] + answer["outputs"]
        for tensor, descriptor in zip(tensors, descriptors, strict=True):
            memories.append(
                DeviceTensorMemory.from_descriptor(
                    self.driver, descriptor, tensor["memory_bytes"], tensor["offset"],
                    tensor["bytes"], True,
                )
            )
            os.close(descriptor)
        specs = self.description["inputs"] + self.description["outputs"]
        return MappedSlot(answer["slot"], memories, specs, len(answer["inputs"]))

    def fill(self, slot: MappedSlot, kind: str = "nominal", seed: int = 1,
             with_truth: bool = True) -> dict[str, Any]:
        return self.ask("fill", slot=slot.number, kind=kind, seed=seed, with_truth=with_truth)

    def compare(self, slot: MappedSlot) -> dict[str, Any]:
        wait()
        return self.ask("compare", slot=slot.number)

    def ring(self, slots: list[MappedSlot], mode: str = "plain",
             channel: Channel | None = None) -> int:
        """Nanoseconds by the device's clock."""
        channel = channel or self.judge
        numbers = [slot.number for slot in slots]
        self.ask("ring", channel, slots=numbers, mode=mode)
        channel.socket.sendall(b"\n")
        rung = channel.socket.recv(1)
        answer, _ = self.answer(channel)
        if rung != b"\n":
            raise AssertionError(f"the bell was answered by {rung!r}")
        return int(answer["device_ns"])


def wait() -> None:
    if DEVICE != "cpu":
        torch.cuda.synchronize(DEVICE)
