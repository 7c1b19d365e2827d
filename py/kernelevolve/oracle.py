# SPDX-License-Identifier: Apache-2.0
"""The oracle: one trusted PyTorch process per problem.

Started as `oracle.py JUDGE_FD COMPILE_FD`, two unix sockets, or forked by zygote.py. Requests are
JSON lines {"do": …}, answers {"ok": …} or {"error": {"code", "message"}}; for tensors on a device
they are those of device_requests.py. Lines {"stage": …} before
an answer say what of the problem is running, so that a crash or a time limit can be blamed.
Standard output and error are not ours: the problem file may print what it likes.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from channel import Channel, Closed  # noqa: E402

Json = dict[str, Any]


class DroppedText(io.TextIOBase):
    """Takes what the problem file prints and keeps nothing of it."""

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class Oracle:
    def __init__(self, channel: Channel, compiler: Any, options: Any) -> None:
        self.channel = channel
        self.compiler = compiler
        self.options = options
        self.sets: dict[int, Any] = {}
        self.kept: dict[int, Any] = {}  # what the eager baseline last returned, by set
        self.next_set = 1
        self.on_device: Any = None  # the requests of an oracle whose tensors lie on a device

    def serve(self) -> None:
        handlers: dict[str, Callable[[Json], None]] = {
            "load": self._load,
            "make_set": self._make_set,
            "release": self._release,
            "share": self._share,
            "hold": self._hold,
            "ring": self._ring,
        }
        from failure import ProblemError, Unavailable

        if self.options.device:
            from device_requests import DeviceRequests

            self.on_device = DeviceRequests(self)
            for name in ("make_set", "release"):
                del handlers[name]
            handlers |= self.on_device.handlers()
        while True:
            request, _ = self.channel.receive()
            try:
                handlers[request["do"]](request)
            except Closed:
                raise
            except ProblemError as error:
                self._fail("invalid", str(error))
            except Unavailable as error:
                self._fail("unavailable", str(error))
            except Exception as error:  # noqa: BLE001  reported to the judge, which decides
                from failure import one_line

                self._fail("internal", one_line(f"{type(error).__name__}: {error}"))

    def _fail(self, code: str, message: str) -> None:
        self.channel.send({"error": {"code": code, "message": message}})

    def stage(self, name: str) -> None:
        self.channel.send({"stage": name})

    def _load(self, request: Json) -> None:
        from problem import load

        self.problem = load(self.options, self.stage)
        self.stage("forward()")
        # Imported late: torch.export costs two seconds, which a faulty file need not wait for.
        gc.disable()
        from description import describe_problem
        from sets import SetMaker

        description, traits, wide = describe_problem(self.problem)
        gc.enable()
        if self.on_device is not None:
            self.on_device.loaded(traits, wide)
        else:
            self.maker = SetMaker(self.problem, traits, wide)
        gc.freeze()
        self.channel.send({"ok": description})

    def _make_set(self, request: Json) -> None:
        self.stage("forward()")
        if request["with_truth"]:
            self.kept.clear()  # a truth in float64 needs the memory more
        made, truths = self.maker.make(request["kind"], request["seed"], request["with_truth"])
        number, self.next_set = self.next_set, self.next_set + 1
        self.sets[number] = made
        descriptors = [file.fd for file in made.files]
        for truth in truths:
            descriptors += truth.descriptors()
        self.channel.send(
            {
                "ok": {
                    "set": number,
                    "inputs": [{"offset": f.offset, "bytes": f.nbytes} for f in made.files],
                    "truths": [truth.encode() for truth in truths],
                    "float64": self.maker.wide,
                }
            },
            descriptors,
        )
        for truth in truths:
            truth.close()

    def _release(self, request: Json) -> None:
        made = self.sets.pop(request["set"], None)
        self.kept.pop(request["set"], None)
        if made is not None:
            self.compiler.release(request["set"], made)
            made.close()
        self.channel.send({"ok": {}})

    def _share(self, request: Json) -> None:
        """Hands sets to the compile process, which is listening by now."""
        for number in request["sets"]:
            self.compiler.share(number, self.sets[number])
        self.channel.send({"ok": {}})

    def _hold(self, request: Json) -> None:
        self.compiler.hold(request["held"])
        self.channel.send({"ok": {}})

    def _ring(self, request: Json) -> None:
        """Runs the eager baseline; the compile process stands still meanwhile."""
        from baseline import eager_calls, ring

        held = self.compiler.held
        calls = eager_calls(self.problem, self.sets, request["sets"])
        self.compiler.hold(True)
        ring(self.channel, calls, self.kept)
        self.compiler.hold(held)


def import_torch(channel: Channel) -> bool:
    gc.disable()  # an import makes no garbage, only objects to look through
    try:
        import torch
    except Exception as error:  # noqa: BLE001  a broken installation may raise anything
        message = (
            f"PyTorch cannot be imported by {sys.executable} ({type(error).__name__}: {error}); "
            "install torch for it or name another interpreter"
        )
        channel.send({"error": {"code": "unavailable", "message": " ".join(message.split())}})
        return False
    gc.enable()
    torch.set_grad_enabled(False)
    return True


def silence() -> None:
    """Standard output and error are not ours, nor are they the problem file's."""
    sys.stdout = sys.stderr = DroppedText()  # type: ignore[assignment]
    with contextlib.suppress(OSError):
        os.set_blocking(2, False)
    warnings.simplefilter("ignore")


def serve(judge: Channel, compile_fd: int) -> None:
    """All of an oracle's life, once torch is imported. Returns when the judge has gone."""
    import torch

    from baseline import start_compile_process
    from problem import Options

    request, _ = judge.receive()
    options = Options(**request["options"])
    compiler = start_compile_process(options, compile_fd, [judge.socket.fileno()])
    torch.set_num_threads(options.threads)
    judge.send({"ok": {}})
    with contextlib.suppress(Closed, OSError):
        Oracle(judge, compiler, options).serve()


def main() -> None:
    judge_fd, compile_fd = (int(argument) for argument in sys.argv[1:3])
    silence()
    judge = Channel(judge_fd)
    if not import_torch(judge):
        return
    serve(judge, compile_fd)
    os._exit(0)


if __name__ == "__main__":
    main()
