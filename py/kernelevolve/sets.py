# SPDX-License-Identifier: Apache-2.0
"""Input sets: drawn, probed, written to memory files, with their truth."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable
from typing import Any

import torch

import truth as truths_of
from analysis import OutputTraits
from binding import BoundModel
from channel import Channel
from failure import DeviceFull
from memory import TensorFile, map_tensor
from probes import probe
from problem import LoadedProblem, ProblemError, Spec, normal_strides, numbered


def element_count(shape: list[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


class InputSet:
    """The oracle's side of a set: tensors in memory files and, once rung, a model bound to them.

    Baselines draw for themselves, so that `files_of_baseline` lacks the draws.
    """

    def __init__(
        self, tensors: list[torch.Tensor], files: list[TensorFile], draw_count: int = 0
    ) -> None:
        self.tensors = tensors
        self.files = files
        self.files_of_baseline = files[: len(files) - draw_count]
        self.shared = False  # the compile process has it too
        self.gentle = False  # probes stayed inside the range that was drawn
        self.captured: Any = None  # the baseline's call as a graph, on a device
        self._bound: BoundModel | None = None

    def bound(self, problem: LoadedProblem) -> BoundModel:
        if self._bound is None:
            self._bound = BoundModel(problem, self.tensors)
        return self._bound

    def hand_on(self, channel: Channel, number: int) -> None:
        """Sends what a baseline needs of the set to the compile process."""
        files = self.files_of_baseline
        message = {"do": "set", "set": number, "offsets": [f.offset for f in files]}
        channel.send(message, [f.fd for f in files])

    def close(self) -> None:
        for file in self.files:
            file.close()


def write_inputs(specs: list[Spec], values: list[torch.Tensor]) -> InputSet:
    files, tensors = [], []
    for spec, value in zip(specs, values, strict=True):
        file = TensorFile(element_count(spec.shape) * spec.dtype.itemsize)
        view = file.view(spec.dtype, spec.shape, spec.strides)
        view.copy_(value)
        files.append(file)
        tensors.append(view)
    return InputSet(tensors, files, sum(spec.kind == "random" for spec in specs))


def keep_inputs(specs: list[Spec], values: list[torch.Tensor]) -> InputSet:
    """A set that only this process has, wherever its tensors lie."""
    tensors = []
    for spec, value in zip(specs, values, strict=True):
        if normal_strides(value) != spec.strides:
            strided = torch.empty_strided(
                spec.shape, spec.strides, dtype=spec.dtype, device=value.device
            )
            value = strided.copy_(value)
        tensors.append(value)
    return InputSet(tensors, [], sum(spec.kind == "random" for spec in specs))


def map_inputs(specs: list[Spec], descriptors: list[int], offsets: list[int]) -> InputSet:
    """A set that another process made, read-only here."""
    tensors = []
    for spec, fd, offset in zip(specs, descriptors, offsets, strict=True):
        size = offset + element_count(spec.shape) * spec.dtype.itemsize
        memory = mmap.mmap(fd, max(size, 1), prot=mmap.PROT_READ)
        tensors.append(map_tensor(memory, offset, spec.dtype, spec.shape, spec.strides))
    return InputSet(tensors, [])


class SetMaker:
    def __init__(
        self,
        problem: LoadedProblem,
        traits: list[OutputTraits],
        wide: bool,
        write: Callable[[list[Spec], list[torch.Tensor]], InputSet] = write_inputs,
    ) -> None:
        self.problem = problem
        self._write_values = write
        self.traits = traits
        self.wide = wide
        self.gentle = False  # learnt: probes outside the drawn range leave the domain

    def make(self, kind: str, seed: int, with_truth: bool) -> tuple[InputSet, list[Any]]:
        made = self.write(kind, seed, self.gentle)
        if not with_truth:
            return made, []
        try:
            found = self.truth(made, seed)
            expected = kind in ("nominal", "special") or self.gentle
            if expected or not any(t.non_finite for t in found):
                return made, found
            for truth in found:
                truth.close()
        except DeviceFull:
            raise
        except ProblemError:
            if kind == "nominal" or self.gentle:
                raise
        made.close()
        made = self.write(kind, seed, True)
        found = self.truth(made, seed)
        if kind != "special" and not any(t.non_finite for t in found):
            self.gentle = True
        return made, found

    def truth(self, made: InputSet, seed: int) -> list[Any]:
        tie_seed = next(numbered(self.problem.options.seed, seed, "ties"))
        found, self.wide = truths_of.compute(
            self.problem, made.tensors, self.traits, self.wide, tie_seed
        )
        gc.collect()
        return found

    def write(self, kind: str, seed: int, gentle: bool) -> InputSet:
        problem = self.problem
        values, _ = problem.draw(next(numbered(problem.options.seed, seed, "inputs")))
        values += problem.state()
        seeds = numbered(problem.options.seed, seed, kind)
        for i, spec in enumerate(problem.inputs[: len(values)]):
            values[i] = probe(values[i], kind, next(seeds), spec.is_state(), gentle)
        # Draws stay as they are drawn: a scaled uniform number would be outside of its range.
        values += problem.make_draws(numbered(problem.options.seed, seed, "draws"))
        made = self._write_values(problem.inputs, values)
        made.gentle = gentle
        return made
