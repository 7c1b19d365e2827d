# SPDX-License-Identifier: Apache-2.0
"""JSON lines with file descriptors over a unix stream socket (the oracle's side).

A message is one line. Its descriptors travel ahead of it on lines {"descriptors": n}, at most
DESCRIPTORS_PER_LINE each, because the kernel limits how many one send may carry.
"""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Sequence
from typing import Any

DESCRIPTORS_PER_LINE = 200


class Closed(Exception):
    """The other side has gone."""


class Channel:
    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)
        self._pending = b""
        self._descriptors: list[int] = []

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        for start in range(0, len(descriptors), DESCRIPTORS_PER_LINE):
            part = descriptors[start : start + DESCRIPTORS_PER_LINE]
            self._send_line({"descriptors": len(part)}, part)
        self._send_line(message, ())

    def _send_line(self, message: dict[str, Any], descriptors: Sequence[int]) -> None:
        data = json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        sent = 0
        if descriptors:
            rights = array.array("i", descriptors)
            sent = self.socket.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self.socket.sendall(data[sent:])

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message with all of its descriptors. Raises Closed at the end."""
        count = 0
        while True:
            message = json.loads(self._line())
            if "descriptors" not in message:
                descriptors = self._descriptors[:count]
                del self._descriptors[:count]
                return message, descriptors
            count += message["descriptors"]

    def readable(self) -> bool:
        """Whether a message (or the end) can be received without waiting."""
        if b"\n" in self._pending:
            return True
        self.socket.setblocking(False)
        try:
            return self._fill()
        except BlockingIOError:
            return False
        finally:
            self.socket.setblocking(True)

    def _fill(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self.socket, 1 << 16, DESCRIPTORS_PER_LINE)
        self._descriptors += descriptors
        self._pending += data
        return bool(data)

    def _line(self) -> bytes:
        while b"\n" not in self._pending:
            if not self._fill():
                raise Closed
        line, self._pending = self._pending.split(b"\n", 1)
        return line
