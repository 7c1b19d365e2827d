# SPDX-License-Identifier: Apache-2.0
"""The requests of an oracle whose tensors lie on a device, in place of those for input sets.

- make_slot {} -> {"slot", "inputs": [{"offset", "bytes", "memory_bytes"}…], "outputs": [same]},
  with a descriptor of each tensor's memory, inputs first; drop_slot {"slot"} -> {}
- fill {"slot", "kind", "seed", "with_truth"} -> {"truths": [what each is like], "float64"}
- poison {"slot", "value"} -> {}: every byte of the outputs, with new canaries around them
- compare {"slot"} -> {"canaries": [intact], "outputs": [Comparison], "poisoned": [elements]}
- same {"a", "b"} -> {"same": [bool]}: the outputs of two slots, bit for bit
- share {"slots"} -> {}; ring {"slots", "mode": "plain" or "graph"}: see baseline.py
- device {"measured"} -> what the device is, and (or 0) how fast PyTorch copies and multiplies on it
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from baseline import eager_calls, ring
from comparison import Comparison
from device_calls import Stopwatch, give_back, wait
from device_slots import DeviceSlots, load_driver, send_memories
from sets import SetMaker, keep_inputs

if TYPE_CHECKING:
    from oracle import Oracle

Json = dict[str, Any]
TRIES = 5  # of which the fastest counts
# Of the device's memory: below it PyTorch's allocator gives back what it keeps for later, since
# launchers and torch.compile's process need some too. What it has given back costs a baseline time.
ROOM_FOR_OTHERS = 0.4
SIZES = {"cuda": (1 << 32, 8192), "cpu": (1 << 24, 256)}  # bytes copied, side of the matrices


class DeviceRequests:
    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.place = oracle.options.place()
        self.slots: DeviceSlots

    def handlers(self) -> dict[str, Callable[[Json], None]]:
        return {
            "make_slot": self._make_slot,
            "drop_slot": self._drop_slot,
            "fill": self._fill,
            "poison": self._poison,
            "compare": self._compare,
            "same": self._same,
            "share": self._share,
            "ring": self._ring,
            "device": self._device,
        }

    def loaded(self, traits: list[Any], wide: bool) -> None:
        """The problem is there; from now on the requests are."""
        give_back(self.place)
        self.maker = SetMaker(self.oracle.problem, traits, wide, keep_inputs)
        self.slots = DeviceSlots(self.oracle.problem, self.maker)
        self.driver = load_driver(self.oracle.problem)

    def _answer(self, answer: Json) -> None:
        self.oracle.channel.send({"ok": answer})

    def _make_slot(self, _: Json) -> None:
        number, slot = self.slots.make()
        answer = {"ok": {"slot": number, **slot.encode()}}
        send_memories(self.oracle.channel, answer, slot.inputs + slot.outputs)

    def _drop_slot(self, request: Json) -> None:
        number = request["slot"]
        wait(self.place)
        slot = self.slots.drop(number)
        self.oracle.kept.pop(number, None)
        if slot is not None:
            self.oracle.compiler.release(number, slot)
        del slot
        give_back(self.place)
        self._answer({})

    def _fill(self, request: Json) -> None:
        self.oracle.stage("forward()")
        number, kind, seed = request["slot"], request["kind"], request["seed"]
        known = self.slots.contents.holds(kind, seed, request["with_truth"])
        if request["with_truth"] and not known:
            self.oracle.kept.clear()  # a truth in float64 needs the memory more
        truths = self.slots.fill(number, kind, seed, request["with_truth"])
        figures = [truth.figures() for truth in truths]
        del truths
        free, total = self.driver.memory()
        if not known and free < ROOM_FOR_OTHERS * total:
            give_back(self.place)
        self._answer({"truths": figures, "float64": self.maker.wide})

    def _poison(self, request: Json) -> None:
        self.slots.poison(request["slot"], request["value"])
        self._answer({})

    def _compare(self, request: Json) -> None:
        self.oracle.stage("forward()")  # a truth may have to be computed again
        canaries, found, poisoned = self.slots.compare(request["slot"])
        outputs = [_encode(comparison) for comparison in found]
        self._answer({"canaries": canaries, "outputs": outputs, "poisoned": poisoned})

    def _same(self, request: Json) -> None:
        self._answer({"same": self.slots.same(request["a"], request["b"])})

    def _share(self, request: Json) -> None:
        for number in request["slots"]:
            self.oracle.compiler.share(number, self.slots.slots[number])
        self._answer({})

    def _ring(self, request: Json) -> None:
        oracle = self.oracle
        held = oracle.compiler.held
        calls = eager_calls(
            oracle.problem, self.slots.slots, request["slots"], request["mode"]
        )
        oracle.compiler.hold(True)
        try:
            ring(oracle.channel, calls, oracle.kept, Stopwatch(self.place))
        finally:
            oracle.compiler.hold(held)

    def _device(self, request: Json) -> None:
        free, total = self.driver.memory()
        bandwidth, flops = self._speeds() if request["measured"] else (0.0, 0.0)
        self._answer(
            {
                **self.driver.facts(),
                "memory_bytes": total,
                "free_bytes": free,
                "torch": torch.__version__,
                "bandwidth": bandwidth,
                "flops_f32": flops,
            }
        )

    def _speeds(self) -> tuple[float, float]:
        """Bytes moved a second by a copy, operations a second of a product."""
        bytes_copied, side = SIZES[self.place.type]
        source = torch.zeros(bytes_copied // 4, device=self.place)
        target = torch.empty_like(source)
        copying = min(
            self._seconds(lambda: target.copy_(source)),
            self._seconds(lambda: torch.neg(source, out=target)),  # by a kernel
        )
        square = torch.zeros(side, side, device=self.place)
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        product = torch.empty_like(square)
        multiplying = self._seconds(lambda: torch.mm(square, square, out=product))
        torch.backends.cuda.matmul.allow_tf32 = before
        del source, target, square, product
        give_back(self.place)
        return 2 * bytes_copied / copying, 2 * side**3 / multiplying

    def _seconds(self, work: Callable[[], Any]) -> float:
        """The fastest of a few calls."""
        taken = []
        for _ in range(TRIES):
            wait(self.place)
            begin = time.perf_counter()
            work()
            wait(self.place)
            taken.append(time.perf_counter() - begin)
        return max(min(taken), 1e-9)


def _encode(found: Comparison) -> Json:
    return {
        key: "inf" if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(found).items()
    }
