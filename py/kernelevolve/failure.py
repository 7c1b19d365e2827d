# SPDX-License-Identifier: Apache-2.0
"""Turns whatever a user's problem file does wrong into one sentence that says what to do."""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator


class ProblemError(Exception):
    """The problem file is at fault; the message is one sentence for its author."""


class DeviceFull(ProblemError):
    """The device has too little memory; there may be more when others give theirs back."""


class Unavailable(Exception):
    """This machine, or this PyTorch, cannot do what was asked; the message says why."""


def one_line(text: str, limit: int = 300) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _line_in(path: str, error: BaseException) -> str:
    """' (line 7)' for the innermost frame of the user's file, or nothing."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return f" (line {lines[-1]})" if lines else ""


def _ran_out_of_memory(error: BaseException) -> bool:
    text = str(error)
    return isinstance(error, MemoryError) or "allocate memory" in text or "alloc_cpu" in text


def fills_device(error: BaseException) -> bool:
    """Whether PyTorch, or the driver, had too little memory on the device."""
    return type(error).__name__ in ("OutOfMemoryError", "DeviceFull", "DeviceMemoryError")


def device_full(path: str, stage: str, error: BaseException) -> DeviceFull:
    if isinstance(error, DeviceFull):
        return error
    text = one_line(str(error))
    found = re.search(r"allocate ([\d.]+ \w+)\..* of which ([\d.]+ \w+) is free", text)
    missing = f"{found[1]} more are needed and {found[2]} are free" if found else text
    return DeviceFull(
        f"{path} needs more memory than the device has, during {stage}: {missing}; make the "
        "problem smaller or free the device"
    )


def describe(path: str, stage: str, error: BaseException, memory_bytes: int) -> str:
    where = _line_in(path, error)
    if isinstance(error, SyntaxError):
        line = error.lineno or 0
        return f"{path} does not parse: {one_line(error.msg)} at line {line}; correct it there"
    if isinstance(error, ModuleNotFoundError):
        return (
            f"{path} needs the Python package '{error.name}'{where}, which is not installed for "
            "this interpreter; install it or remove the import"
        )
    if isinstance(error, SystemExit):
        return f"{path} exits the program during {stage}{where}; remove the call to exit"
    if isinstance(error, KeyboardInterrupt):
        return f"{path} raises KeyboardInterrupt during {stage}{where}; remove that"
    if _ran_out_of_memory(error):
        return (
            f"{path} needs more memory than the {memory_bytes / 2**30:.3g} GiB that the oracle may "
            f"use, during {stage}{where}; make the problem smaller or raise the limit"
        )
    name = type(error).__name__
    text = one_line(str(error)) or "no message"
    return f"{path} raises {name} during {stage}{where}: {text}; make it run under plain PyTorch"


@contextlib.contextmanager
def blame_problem(path: str, stage: str, memory_bytes: int) -> Iterator[None]:
    """Whatever is raised inside becomes a ProblemError that names the file and the stage."""
    try:
        yield
    except ProblemError:
        raise
    except BaseException as error:  # noqa: BLE001  user code may raise anything, SystemExit too
        if fills_device(error):
            raise device_full(path, stage, error) from error
        raise ProblemError(describe(path, stage, error, memory_bytes)) from error
