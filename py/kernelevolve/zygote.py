# SPDX-License-Identifier: Apache-2.0
"""The zygote: has imported PyTorch with all that an oracle needs of it, and forks oracles, and
processes for candidates that are Python modules (model_runner.py).

Started as `zygote.py SOCKET_FD`. Says {"ok": {}} when it is warm, or {"error": …} when it must not
fork. Each request then brings descriptors: the process that keeps a room, the oracle's two sockets,
its standard error, a socket for its life's news, and what the room has of Landlock and control
groups. No code of a problem ever runs in this process, so that every child starts clean.

Two processes come of a request. The *usher* joins the room's namespaces and forks the oracle, which
is thereby born inside; then it only waits, because an oracle's parent alone learns how it ended.
News are JSON lines: {"pid": n} and {"exited": n} or {"signal": n} from the usher, {"entered": true}
or {"error": …} from the oracle before anything of the problem runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable
from typing import Any, NoReturn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import oracle  # noqa: E402
from channel import Channel, Closed  # noqa: E402

Json = dict[str, Any]

PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 4, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
SYS_LANDLOCK_RESTRICT_SELF = 446  # on every architecture
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def call(function: str, *arguments: Any) -> None:
    """A function of the C library that returns 0. Raises OSError."""
    if getattr(libc, function)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def prctl(option: int, *arguments: int) -> None:
    given = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    call("prctl", option, *given)


# --- Warming up -----------------------------------------------------------------------------------


def warm_up(channel: Channel) -> bool:
    """Imports what every oracle needs; tells the judge when it cannot."""
    if not oracle.import_torch(channel):
        return False
    gc.disable()
    import torch
    import torch.export._trace  # two seconds, most of what a first export costs

    import baseline  # noqa: F401  an oracle cannot import it later: its room does not show it
    import description  # noqa: F401
    import device_requests  # noqa: F401
    import model_runner  # noqa: F401
    import sets  # noqa: F401

    torch.set_num_threads(1)  # a pool of threads would not survive a fork
    settle()
    return True


def load_for_more() -> None:
    import torch._inductor.compile_fx  # noqa: F401


def load_for_models() -> None:
    import triton  # noqa: F401
    import triton.language  # noqa: F401


def warm_up_if_harmless(load: Callable[[], None]) -> None:
    """Imports what children would import anew, unless that would end the forking.

    A PyTorch built for CUDA starts a thread when its compiler is imported, which no fork survives;
    so a child tries first. What fails to be imported is left to those who want it to say so.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # so that it can be waited for
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            load()
        os._exit(min(len(os.listdir("/proc/self/task")) - 1, 100))
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        status = 1
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if status != 0:
        return
    gc.disable()
    with contextlib.suppress(Exception):
        load()
    settle()


def settle() -> None:
    """Makes what is inherited cheap: no garbage to look through, no freed memory to copy."""
    gc.enable()
    gc.freeze()
    # Children get fresh pages for what they allocate, huge ones where they may, as if on their own.
    with contextlib.suppress(AttributeError):
        libc.malloc_trim(0)


def why_not_fork() -> str:
    """Why children would not start clean, or nothing."""
    if os.fork() == 0:  # libraries that start threads at import (OpenBLAS) end them before a fork
        os._exit(0)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        return f"importing torch left {threads} threads"
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("/dev/") and target != "/dev/null":
                return f"importing torch opened {target}"
    with open("/proc/self/maps") as maps:
        shared = [line for line in maps if line.split()[1].endswith("s")]
    if any("w" in line.split()[1] for line in shared):
        return "importing torch made memory that children would share"
    return ""


# --- Moving in ------------------------------------------------------------------------------------


def drop_privileges() -> None:
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last one, or none to drop
    with contextlib.suppress(OSError):
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = ctypes.create_string_buffer(struct.pack("=Ii", CAPABILITY_VERSION_3, 0))
    call("capset", header, ctypes.create_string_buffer(24))


def close_others(kept: list[int]) -> None:
    below = 3
    for fd in sorted(kept):
        os.closerange(below, fd)
        below = fd + 1
    os.closerange(below, resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def settle_in(request: Json, landlock: list[int], groups: list[int]) -> None:
    """What an exec'd oracle is given between clone and exec, in the same order."""
    os.setsid()
    for group in groups:
        os.write(group, b"0")
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    for ruleset in landlock:
        call("syscall", SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    drop_privileges()
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    data = request["data_bytes"]
    if hard != resource.RLIM_INFINITY:
        data = min(data, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    processors = sorted(os.sched_getaffinity(0))[: max(1, request["processors"])]
    os.sched_setaffinity(0, processors)
    prctl(PR_SET_DUMPABLE, 1)  # as after an exec; the change of user namespace took it away
    os.environ.clear()
    os.environ.update(line.split("=", 1) for line in request["environment"])
    tempfile.tempdir = None  # it was the zygote's


def be_oracle(request: Json, fds: list[int]) -> NoReturn:
    """The child inside the room."""
    _, judge, compile_fd, error, news, *rest = fds
    landlock, groups = rest[: request["landlock"]], rest[request["landlock"] :]
    try:
        settle_in(request, landlock, groups)
        os.dup2(error, 2)
        tell(news, {"entered": True})
    except Exception as reason:  # noqa: BLE001  whatever it is, an oracle cannot be here
        tell(news, {"error": f"an oracle cannot settle in its room ({reason})"})
        os._exit(1)
    try:
        close_others([judge, compile_fd])
        oracle.silence()
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed()  # forks drew the same numbers otherwise; Python reseeds its own
        if request["role"] == "model":
            import model_runner

            os._exit(model_runner.Runner(judge, request["driver"]).serve())
        oracle.serve(Channel(judge), compile_fd)
    except BaseException:  # noqa: BLE001  nobody is left to be told; the code says that it failed
        os._exit(1)
    os._exit(0)


def tell(news: int, message: Json) -> None:
    os.write(news, json.dumps(message).encode() + b"\n")


def usher(request: Json, fds: list[int]) -> None:
    """Brings an oracle into its room and reports its end."""
    keeper, news = fds[0], fds[4]
    os.setpgid(0, 0)  # who kills the zygote's group does not mean the oracles
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        call("setns", keeper, request["namespaces"])
        pid = os.fork()
    except OSError as reason:
        tell(news, {"error": f"a process cannot enter an oracle's room ({reason})"})
        return
    if pid == 0:
        be_oracle(request, fds)
    close_others([keeper, news])
    tell(news, {"pid": pid})
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    # The room ends with the oracle, as it would with its first process.
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(keeper, signal.SIGKILL)
    assert ended is not None
    how = "exited" if ended.si_code == os.CLD_EXITED else "signal"
    tell(news, {how: ended.si_status})
    # Until the judge has taken note, the oracle's number must not become another process's.
    os.read(news, 1)
    os.waitpid(pid, 0)


def serve(channel: Channel) -> None:
    served, models, why = 0, 0, ""
    while not why:
        request, fds = channel.receive()
        if request["role"] == "model":
            models += 1
            if models == 1:
                warm_up_if_harmless(load_for_models)
                why = why_not_fork()
        else:
            served += 1
            if served == 2:
                # A single oracle need not wait for what only further ones make worth its time.
                warm_up_if_harmless(load_for_more)
                why = why_not_fork()
        with contextlib.suppress(OSError):  # no process to be had: the news end without any
            if why:
                tell(fds[4], {"error": why})
            elif os.fork() == 0:
                with contextlib.suppress(OSError):
                    channel.socket.close()
                    usher(request, fds)
                os._exit(0)
        for fd in fds:
            os.close(fd)


def main() -> None:
    channel = Channel(int(sys.argv[1]))
    oracle.silence()
    if not warm_up(channel):
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ushers need no burial
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # nor do oracles whose usher was killed
    why = why_not_fork()
    if why:
        channel.send({"error": {"code": "unavailable", "message": why}})
        return
    channel.send({"ok": {}})
    with contextlib.suppress(Closed, OSError):
        serve(channel)
    os._exit(0)


if __name__ == "__main__":
    main()
