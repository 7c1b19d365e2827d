# SPDX-License-Identifier: Apache-2.0
"""Slots: memory on a device for the inputs and outputs of one call, and what was filled into it.

A slot is what other processes map. A *content* is one input set with its truth, known by kind and
seed; it belongs to no slot. Contents stay on the device while they leave room for others, and are
made again from their seeds otherwise: draws come from the device's own generator, so that they are
the same again.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch

from channel import Channel
from comparison import CHUNK, Comparison, Tolerance, compare
from device_calls import give_back, wait
from device_memory import DeviceTensorMemory, Driver
from failure import DeviceFull, device_full, fills_device
from problem import LoadedProblem
from sets import InputSet, SetMaker, element_count
from truth import Truth

CONTENTS_SHARE = 0.4  # of the device's memory
BYTES_AT_ONCE = 1 << 28  # that are compared, to keep temporaries small
WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Made = TypeVar("Made")


def load_driver(problem: LoadedProblem) -> Driver:
    place = problem.options.place()
    driver = Driver.load(problem.options.driver, on_processor=place.type == "cpu")
    driver.ordinal = place.index or 0
    return driver


def bytes_of(shape: list[int], dtype: torch.dtype) -> int:
    return element_count(shape) * dtype.itemsize


class Slot(InputSet):
    """The memory of one call's tensors; an InputSet by its inputs."""

    def __init__(self, problem: LoadedProblem, driver: Driver) -> None:
        place = problem.options.place()
        tensors = [(spec.dtype, spec.shape) for spec in problem.inputs] + problem.outputs
        driver.require(sum(driver.size_of(bytes_of(shape, dtype)) for dtype, shape in tensors))
        self.random = torch.Generator(place).manual_seed(int.from_bytes(os.urandom(7), "little"))
        self.inputs = [
            DeviceTensorMemory(driver, bytes_of(spec.shape, spec.dtype), self.random)
            for spec in problem.inputs
        ]
        self.outputs = [
            DeviceTensorMemory(driver, bytes_of(shape, dtype), self.random)
            for dtype, shape in problem.outputs
        ]
        specs = zip(problem.inputs, self.inputs, strict=True)
        super().__init__([m.view(s.dtype, s.shape, s.strides) for s, m in specs], [])
        self.results = [
            memory.view(dtype, shape)
            for (dtype, shape), memory in zip(problem.outputs, self.outputs, strict=True)
        ]
        self.baseline_count = sum(spec.kind != "random" for spec in problem.inputs)
        self.content: Key | None = None
        self.poison_byte: int | None = None

    def poison(self, value: int) -> None:
        self.poison_byte = value
        for memory in self.outputs:
            memory.poison(value)
            memory.renew_canaries(self.random)

    def poisoned_elements(self) -> list[int]:
        """How many elements of each output still hold nothing but the poison."""
        if self.poison_byte is None:
            return [0] * len(self.outputs)
        found = []
        for memory, result in zip(self.outputs, self.results, strict=True):
            whole = memory.data().view(WHOLE[result.itemsize])
            byte = torch.full((result.itemsize,), self.poison_byte, dtype=torch.uint8)
            value = byte.view(whole.dtype).item()
            found.append(sum(int((part == value).sum()) for part in whole.split(CHUNK)))
        return found

    def hand_on(self, channel: Channel, number: int) -> None:
        memories = self.inputs[: self.baseline_count]
        tensors = [[m.offset, m.nbytes, m.size] for m in memories]
        send_memories(channel, {"do": "set", "set": number, "tensors": tensors}, memories)

    def encode(self) -> dict[str, Any]:
        return {
            name: [
                {"offset": m.offset, "bytes": m.nbytes, "memory_bytes": m.size} for m in memories
            ]
            for name, memories in (("inputs", self.inputs), ("outputs", self.outputs))
        }


def send_memories(
    channel: Channel, message: dict[str, Any], memories: list[DeviceTensorMemory]
) -> None:
    descriptors: list[int] = []
    try:
        for memory in memories:
            descriptors.append(memory.export())
        channel.send(message, descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def import_inputs(
    problem: LoadedProblem, descriptors: list[int], tensors: list[list[int]]
) -> InputSet:
    """The inputs of another process's slot, read-only here."""
    driver, views = load_driver(problem), []
    for spec, fd, (offset, nbytes, size) in zip(
        problem.inputs, descriptors, tensors, strict=True
    ):
        memory = DeviceTensorMemory.from_descriptor(driver, fd, size, offset, nbytes, False)
        views.append(memory.view(spec.dtype, spec.shape, spec.strides))
    return InputSet(views, [])


def same_bytes(a: torch.Tensor, b: torch.Tensor) -> bool:
    parts = zip(a.split(BYTES_AT_ONCE), b.split(BYTES_AT_ONCE), strict=True)
    return all(torch.equal(x, y) for x, y in parts)


class Key(NamedTuple):
    kind: str
    seed: int
    gentle: bool  # see SetMaker


@dataclass
class Content:
    made: InputSet | None = None
    truths: list[Truth] | None = None

    def nbytes(self) -> int:
        tensors = self.made.tensors if self.made else []
        files = [f for t in self.truths or [] for f in (t.values, t.ignore) if f is not None]
        return sum(t.numel() * t.itemsize for t in tensors) + sum(f.nbytes for f in files)


class Contents:
    """Makes contents, keeps the latest, and makes the others again when they are asked for."""

    def __init__(self, maker: SetMaker, bytes_max: int) -> None:
        self.maker = maker
        self.bytes_max = bytes_max
        self._known: OrderedDict[Key, Content] = OrderedDict()
        self._gentle: dict[tuple[str, int], bool] = {}  # decided when the truth was first computed

    def make(self, kind: str, seed: int, with_truth: bool) -> tuple[Key, Content]:
        gentle = self._gentle.get((kind, seed))
        if gentle is not None:
            return self._again(Key(kind, seed, gentle), with_truth)
        if not with_truth:
            return self._again(Key(kind, seed, self.maker.gentle), False)
        made, truths = self.maker.make(kind, seed, True)
        self._gentle[kind, seed] = made.gentle
        key = Key(kind, seed, made.gentle)
        return key, self._keep(key, Content(made, truths))

    def holds(self, kind: str, seed: int, with_truth: bool) -> bool:
        """Whether it is all here, with nothing to be computed."""
        gentle = self._gentle.get((kind, seed))
        known = self._known.get(Key(kind, seed, gentle)) if gentle is not None else None
        return known is not None and known.made is not None and bool(known.truths or not with_truth)

    def has_truth(self, key: Key | None) -> bool:
        return key is not None and self._gentle.get((key.kind, key.seed)) == key.gentle

    def truths(self, key: Key) -> list[Truth]:
        truths = self._again(key, True)[1].truths
        assert truths is not None
        return truths

    def forget(self) -> None:
        self._known.clear()

    def _again(self, key: Key, with_truth: bool) -> tuple[Key, Content]:
        content = self._known.get(key) or Content()
        wants_truth = with_truth and content.truths is None
        if content.made is None and (wants_truth or not with_truth):
            content.made = self.maker.write(key.kind, key.seed, key.gentle)
        if wants_truth:
            assert content.made is not None
            content.truths = self.maker.truth(content.made, key.seed)
        return key, self._keep(key, content)

    def _keep(self, key: Key, content: Content) -> Content:
        """Remembers it as the latest, and a copy of what it has: the caller's stays whole."""
        self._known[key] = Content(content.made, content.truths)
        self._known.move_to_end(key)
        total = sum(kept.nbytes() for kept in self._known.values())
        for old in list(self._known):
            kept = self._known[old]
            # Truths are dear, so that the latest one stays however large it is.
            for part in ("made", "truths") if old != key else ("made",):
                if total > self.bytes_max:
                    total -= kept.nbytes()
                    setattr(kept, part, None)
                    total += kept.nbytes()
            if kept.made is None and kept.truths is None:
                del self._known[old]
        return content


class DeviceSlots:
    """All slots of a problem."""

    def __init__(self, problem: LoadedProblem, maker: SetMaker) -> None:
        self.problem = problem
        self.place = problem.options.place()
        self.driver = load_driver(problem)
        self.contents = Contents(maker, int(self.driver.memory()[1] * CONTENTS_SHARE))
        self.slots: dict[int, Slot] = {}
        self._next = 1

    def make(self) -> tuple[int, Slot]:
        give_back(self.place)
        slot = self._with_room("making of a slot", lambda: Slot(self.problem, self.driver))
        number, self._next = self._next, self._next + 1
        self.slots[number] = slot
        return number, slot

    def drop(self, number: int) -> Slot | None:
        return self.slots.pop(number, None)

    def fill(self, number: int, kind: str, seed: int, with_truth: bool) -> list[Truth]:
        slot = self.slots[number]
        if with_truth and not self.contents.holds(kind, seed, with_truth):
            give_back(self.place)
        key, content = self._with_room(
            "drawing of inputs and their truth",
            lambda: self._made_whole(kind, seed, with_truth),
        )
        assert content.made is not None
        slot.content = None  # nothing whole until all is written
        for view, value in zip(slot.tensors, content.made.tensors, strict=True):
            view.copy_(value)
        slot.content = key
        wait(self.place)
        return (content.truths or []) if with_truth else []

    def _made_whole(self, kind: str, seed: int, with_truth: bool) -> tuple[Key, Content]:
        """A content with its inputs, and its truth if that is wanted."""
        key, content = self.contents.make(kind, seed, with_truth)
        if content.made is None:
            content.made = self.contents.make(kind, seed, False)[1].made
        return key, content

    def poison(self, number: int, value: int) -> None:
        self.slots[number].poison(value)
        wait(self.place)

    def compare(self, number: int) -> tuple[list[bool], list[Comparison], list[int]]:
        slot = self.slots[number]
        if not self.contents.has_truth(slot.content):
            raise LookupError(f"slot {number} holds nothing that has a truth")
        canaries = [memory.canaries_intact() for memory in slot.outputs]
        key = slot.content
        assert key is not None
        found = self._with_room("comparison", lambda: self._compared(slot, key))
        return canaries, found, slot.poisoned_elements()

    def _compared(self, slot: Slot, key: Key) -> list[Comparison]:
        found = []
        for result, truth in zip(slot.results, self.contents.truths(key), strict=True):
            shape = list(result.shape)
            stored = torch.float64 if result.dtype.is_floating_point else result.dtype
            ignore = truth.ignore.view(torch.bool, [result.numel()]) if truth.ignore else None
            tolerance = Tolerance(truth.atol, truth.rtol, truth.any_non_finite_kind)
            found.append(compare(result, truth.values.view(stored, shape), ignore, tolerance))
        return found

    def same(self, a: int, b: int) -> list[bool]:
        pairs = zip(self.slots[a].outputs, self.slots[b].outputs, strict=True)
        return [same_bytes(x.data(), y.data()) for x, y in pairs]

    def _with_room(self, stage: str, work: Callable[[], Made]) -> Made:
        """Does it; if the device is too full, once more without the contents that are kept."""
        failed = self._try(stage, work)
        if not isinstance(failed, DeviceFull):
            return failed
        self.contents.forget()
        give_back(self.place)
        failed = self._try(stage, work)
        if isinstance(failed, DeviceFull):
            raise failed
        return failed

    def _try(self, stage: str, work: Callable[[], Made]) -> Made | DeviceFull:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  only a full device is dealt with here
            if not fills_device(error):
                raise
            # Anew, without a traceback and a cause, which refer to what takes the room.
            return DeviceFull(str(device_full(self.problem.options.path, stage, error)))
