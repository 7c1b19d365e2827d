# SPDX-License-Identifier: Apache-2.0
"""What calls on a device need beyond those on the processor: beginning, waiting, timing, capture.

The device may be the processor itself (tests): then there is nothing to wait for or to capture.
Nothing touches the device before enter(), so that a process can fork until then.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from failure import Unavailable, one_line

if TYPE_CHECKING:
    from binding import BoundModel


def enter(device: torch.device) -> None:
    """Makes the device this process's. Raises Unavailable."""
    if device.type == "cpu":
        return
    try:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device)
    except Exception as error:  # noqa: BLE001  a driver may fail in any way
        text = one_line(f"{type(error).__name__}: {error}")
        raise Unavailable(f"PyTorch cannot use the device '{device}' ({text})") from error


def set_precision(precision: str) -> None:
    """What PyTorch does by itself on a device is TF32 in convolutions and IEEE in products."""
    torch.backends.cudnn.allow_tf32 = precision != "ieee"
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def give_back(device: torch.device) -> None:
    """Returns what nothing refers to any more, for others to allocate."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()


class Stopwatch:
    """Times a batch of calls by the device's own events, and waits for its end."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        wait(device)

    def start(self) -> None:
        if self.device.type == "cuda":
            self.begin.record()

    def stop(self) -> None:
        if self.device.type == "cuda":
            self.end.record()
            self.end.synchronize()

    def nanoseconds(self) -> int:
        """Between start() and stop(); 0 where the device has no events."""
        return round(self.begin.elapsed_time(self.end) * 1e6) if self.device.type == "cuda" else 0


class Captured:
    """One call as a graph of the device's, with all that the graph refers to."""

    def __init__(
        self, bound: BoundModel, function: Callable[..., Any], arguments: list[Any],
        device: torch.device,
    ) -> None:
        if device.type != "cuda":
            raise Unavailable(f"calls on '{device}' cannot be captured in a graph")
        self.graph = torch.cuda.CUDAGraph()
        try:
            beside = torch.cuda.Stream(device)
            beside.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(beside):  # libraries allocate in their first call
                function(*arguments)
            torch.cuda.current_stream(device).wait_stream(beside)
            bound.restore()
            self.state = bound.state_of_attributes()
            with torch.cuda.graph(self.graph):
                self.result = function(*arguments)
        except Exception as error:  # noqa: BLE001  a capture may fail in any way
            text = one_line(f"{type(error).__name__}: {error}")
            raise Unavailable(f"forward() cannot be captured in a graph ({text})") from error
        wait(device)

    def replay(self) -> None:
        self.graph.replay()
