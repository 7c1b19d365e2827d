# SPDX-License-Identifier: Apache-2.0
"""The baselines: eager in the oracle's process, torch.compile in one of its own.

Ringing has two steps. The request names the sets, and everything that is not the call is prepared
(models bound, state restored, new sets warmed up). Then one byte rings, the calls run, and one byte
answers: RUNG, or FAILED followed by an error message. On a device the calls are waited for, and a
message with their time by the device's events follows RUNG.

What a set's last call returned is kept until the set's next one, so that results rotate through as
much memory as a candidate's outputs do: a result dropped at once would be written to the same block
again, which is still in the cache.

Random numbers are drawn as the problem is written, by PyTorch's generator within the call.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from binding import BoundModel
from channel import Channel, Closed
from device_calls import Captured, Stopwatch, give_back
from device_slots import import_inputs
from failure import Unavailable
from library_forms import Recorder, described, library_forms
from problem import LoadedProblem, Options, load
from sets import InputSet, map_inputs

RUNG, FAILED = b"\n", b"!"
PR_SET_PDEATHSIG = 1


@dataclass
class Call:
    """One call of a baseline with a set; the result lives in `kept`, by the set's number."""

    number: int
    function: Callable[..., Any]
    arguments: list[Any]


def ring(
    channel: Channel, calls: list[Call], kept: dict[int, Any], watch: Stopwatch | None = None
) -> None:
    """Answers the request, waits for the bell, runs every call once, answers."""
    doorbell = channel.socket
    gc.disable()
    channel.send({"ok": {}})
    if not doorbell.recv(1):
        raise Closed
    try:
        if watch is not None:
            watch.start()
        for call in calls:
            kept[call.number] = call.function(*call.arguments)
        if watch is not None:
            watch.stop()
    except Exception as error:  # noqa: BLE001  the reference ran before; report, don't die
        doorbell.send(FAILED)
        channel.send({"error": {"code": "internal", "message": f"the baseline failed: {error}"}})
    else:
        doorbell.send(RUNG)
        if watch is not None:
            channel.send({"ok": {"device_ns": watch.nanoseconds()}})
    finally:
        gc.enable()


def eager_calls(
    problem: LoadedProblem, sets: Mapping[int, InputSet], wanted: list[int], mode: str = "plain"
) -> list[Call]:
    calls = []
    for number in wanted:
        bound = sets[number].bound(problem)
        function, arguments = bound.model, bound.arguments
        calls.append(prepared(problem, sets[number], number, function, arguments, mode))
    return calls


def prepared(
    problem: LoadedProblem,
    made: InputSet,
    number: int,
    function: Callable[..., Any],
    arguments: list[Any],
    mode: str,
) -> Call:
    """The call with its state restored, or a replay of it in the mode "graph" (or Unavailable)."""
    bound = made.bound(problem)
    if mode == "graph" and made.captured is None:
        made.captured = Captured(bound, function, arguments, problem.options.place())
    bound.restore()
    if mode == "graph":
        return Call(number, made.captured.replay, [])
    return Call(number, function, arguments)


class CompiledBaseline:
    """The compile process: builds on request, receives sets from the oracle, answers the bell."""

    def __init__(self, judge: Channel, oracle: Channel, options: Options) -> None:
        self.judge = judge
        self.oracle = oracle
        self.options = options
        self.sets: dict[int, InputSet] = {}
        self.warm: set[int] = set()
        self.kept: dict[int, Any] = {}
        self.problem: LoadedProblem | None = None
        self.compiled: Callable[..., Any] | None = None
        self.forms: list[dict[str, str]] = []

    def serve(self) -> None:
        while True:
            request, _ = self.judge.receive()
            try:
                if request["do"] == "build":
                    self._build(request)
                    self.judge.send({"ok": {}})
                elif request["do"] == "ring":
                    self._ring(request)
                elif request["do"] == "forms":
                    self.judge.send({"ok": {"forms": self.forms}})
            except Closed:
                raise
            except Unavailable as error:
                self.judge.send({"error": {"code": "unavailable", "message": str(error)}})
            except Exception as error:  # noqa: BLE001  torch.compile may fail in any way
                text = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                self.judge.send({"error": {"code": "internal", "message": text}})

    def _ring(self, request: dict[str, Any]) -> None:
        if self.options.device:
            calls = self._calls(request["slots"], request["mode"])
            ring(self.judge, calls, self.kept, Stopwatch(self.options.place()))
        else:
            ring(self.judge, self._calls(request["sets"], "plain"), self.kept)

    def _build(self, request: dict[str, Any]) -> None:
        problem = load(self.options, lambda _: None)
        problem.mutated.update(request["mutated"])
        problem.reassigned.update(request["reassigned"])
        self.problem = problem
        recorder = Recorder() if self.options.device else None
        if recorder is not None:  # known first: what needs no compiler, should that fail
            self.forms = library_forms(problem, self._text(), None, request["draws"])
        # One compiled function for all sets: with modules inlined, parameters are its inputs.
        self.compiled = torch.compile(
            lambda model, *arguments: model(*arguments),
            backend=recorder.backend if recorder else "inductor",
        )
        for seed in range(2):
            arguments, _ = problem.draw(self.options.seed + seed)
            bound = BoundModel(problem, [t.clone() for t in arguments + problem.state()])
            result = self.compiled(bound.model, *bound.arguments)
            problem.outputs = described(result)
            if recorder is not None and seed == 0 and not request["draws"]:
                self.forms = library_forms(problem, self._text(), recorder.take(bound))
        del arguments, bound, result
        if self.options.device:
            give_back(self.options.place())

    def _text(self) -> str:
        with open(self.options.path, encoding="utf-8") as file:
            return file.read()

    def _receive_sets(self, wanted: list[int]) -> None:
        while self.oracle.readable() or any(i not in self.sets for i in wanted):
            message, descriptors = self.oracle.receive()
            if message["do"] == "release":
                self.sets.pop(message["set"], None)
                self.warm.discard(message["set"])
                self.kept.pop(message["set"], None)
                if self.options.device:
                    give_back(self.options.place())
                continue
            assert self.problem is not None
            made = self._map(descriptors, message)
            for fd in descriptors:
                os.close(fd)
            self.sets[message["set"]] = made

    def _map(self, descriptors: list[int], message: dict[str, Any]) -> InputSet:
        assert self.problem is not None
        if self.options.device:
            return import_inputs(self.problem, descriptors, message["tensors"])
        return map_inputs(self.problem.inputs, descriptors, message["offsets"])

    def _calls(self, wanted: list[int], mode: str) -> list[Call]:
        assert self.problem is not None and self.compiled is not None
        self._receive_sets(wanted)
        calls = []
        for number in wanted:
            bound = self.sets[number].bound(self.problem)
            if number not in self.warm:
                self.compiled(bound.model, *bound.arguments)
                self.warm.add(number)
            arguments = [bound.model, *bound.arguments]
            made = self.sets[number]
            calls.append(prepared(self.problem, made, number, self.compiled, arguments, mode))
        return calls


class CompileProcess:
    """The oracle's handle on the compile process, which leads a process group of its own.

    Held (stopped with its compilers), it disturbs no measurement.
    """

    def __init__(self, pid: int, channel: Channel) -> None:
        self.pid = pid
        self.channel = channel
        self.held = False

    def hold(self, held: bool) -> None:
        if held != self.held:
            self.held = held
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGSTOP if held else signal.SIGCONT)

    def share(self, number: int, made: InputSet) -> None:
        if not made.shared:
            made.hand_on(self.channel, number)
            made.shared = True

    def release(self, number: int, made: InputSet) -> None:
        if made.shared:
            self.channel.send({"do": "release", "set": number})


def start_compile_process(options: Options, compile_fd: int, close: list[int]) -> CompileProcess:
    """Forks. Must be called before any thread exists; the child shares the imported modules."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setpgid(0, 0)
        ours.close()
        for fd in close:
            os.close(fd)
        torch.set_num_threads(options.threads)
        compiler = CompiledBaseline(Channel(compile_fd), Channel(theirs.detach()), options)
        with contextlib.suppress(Closed, OSError):
            compiler.serve()
        os._exit(0)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # both sides do it, so that hold() always finds the group
    os.close(compile_fd)
    theirs.close()
    return CompileProcess(pid, Channel(ours.detach()))
