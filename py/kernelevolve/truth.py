# SPDX-License-Identifier: Apache-2.0
"""Expected values: the problem in float64, and PyTorch's own error against it.

Where sums are long, the default absolute tolerance is less than PyTorch's own rounding error, and
an honest kernel would miss it in other elements than PyTorch does. It is therefore raised to what
the pooled budget allows: 4 standard deviations of 8 times PyTorch's error. A tolerance from the
sidecar, and the precision contract `kernelbench`, stay as they are. Where PyTorch misses the
default in many elements (networks in TF32), those that it happens to meet say little of its error:
there the standard deviation is taken from the median over all elements, and nearly all are graded
(docs/decisions/0018-the-tolerance-follows-typical-errors.md).

An element is not graded when PyTorch, in the problem's own precision, misses the tolerance there,
or when a perturbation of the inputs by a few units in the last place moves the true result of a
discontinuous graph beyond it (a tie).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch

from analysis import OutputTraits
from binding import BoundModel, bind_float64, float64_default
from comparison import CHUNK as DEVICE_CHUNK
from draws import drawing_nothing
from failure import device_full, fills_device
from memory import TensorFile
from probes import random_on
from problem import LoadedProblem, output_tensors

CHUNK = 1 << 22  # elements compared at a time, to keep temporaries small; on the processor
TIE_ULPS = 16
TIE_ROUNDS = 2
ATTAINABLE_RMS = 32.0  # times PyTorch's rms error: the least default absolute tolerance
MANY_MISSED = 0.1  # of the elements: from here on the met ones don't stand for the others
MEDIAN_OF_NORMAL = 0.6745  # median of |x| in standard deviations of a normal x
SAMPLE = 1 << 20  # elements that a median is taken of
ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}


@dataclass
class TensorHere:
    """A tensor that stays in this process, in the place of a file."""

    tensor: torch.Tensor

    @property
    def nbytes(self) -> int:
        return self.tensor.numel() * self.tensor.itemsize

    def view(self, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
        assert dtype == self.tensor.dtype
        return self.tensor.view(shape)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Truth:
    values: TensorFile | TensorHere
    ignore: TensorFile | TensorHere | None
    rms_truth: float
    pytorch_rms: float
    pytorch_max: float
    atol: float
    rtol: float
    any_non_finite_kind: bool
    non_finite: int

    def encode(self) -> dict[str, Any]:
        ignore_bytes = self.ignore.nbytes if self.ignore else 0
        return {"bytes": self.values.nbytes, "ignore_bytes": ignore_bytes, **self.figures()}

    def figures(self) -> dict[str, Any]:
        """What the judge learns of a truth whose values it does not get."""
        return {
            "rms_truth": min(self.rms_truth, sys.float_info.max),
            "pytorch_rms": min(self.pytorch_rms, sys.float_info.max),
            "pytorch_max": min(self.pytorch_max, sys.float_info.max),
            "atol": self.atol,
            "rtol": self.rtol,
            "any_non_finite_kind": self.any_non_finite_kind,
        }

    def descriptors(self) -> list[int]:
        files = [file for file in (self.values, self.ignore) if isinstance(file, TensorFile)]
        return [file.fd for file in files]

    def close(self) -> None:
        self.values.close()
        if self.ignore:
            self.ignore.close()


def tolerance(problem: LoadedProblem, dtype: torch.dtype) -> tuple[float, float]:
    default = 1e-2 if dtype in (torch.float16, torch.bfloat16) else 1e-4
    if not dtype.is_floating_point:
        return 0.0, 0.0
    sidecar = problem.sidecar
    return (
        default if sidecar.atol is None else sidecar.atol,
        default if sidecar.rtol is None else sidecar.rtol,
    )


def run_wide(problem: LoadedProblem, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Outputs with float64 as the default type. Raises whatever the model raises."""
    with float64_default():
        bound = bind_float64(problem, tensors)
        return output_tensors(problem.options, bound())


def _run_wide_if_possible(
    problem: LoadedProblem, tensors: list[torch.Tensor]
) -> list[torch.Tensor] | None:
    try:
        return run_wide(problem, tensors)
    except Exception as error:  # noqa: BLE001  whatever it is, there is no float64
        if fills_device(error):  # a device that is full now need not be later
            raise device_full(problem.options.path, "forward() in float64", error) from error
        return None


def run_own(problem: LoadedProblem, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    with problem.blame("forward()"), drawing_nothing(problem.options.path):
        return output_tensors(problem.options, BoundModel(problem, tensors)())


def _store(
    problem: LoadedProblem, outputs: list[torch.Tensor]
) -> list[TensorFile | TensorHere]:
    """Truth into memory files: float64 for floating outputs, else their type. A device's stays."""
    files: list[TensorFile | TensorHere] = []
    for i, (dtype, shape) in enumerate(problem.outputs):
        stored = torch.float64 if dtype.is_floating_point else dtype
        output, outputs[i] = outputs[i], torch.empty(0)
        if problem.options.device:
            files.append(TensorHere(output.to(stored).contiguous()))
            continue
        file = TensorFile(output.numel() * stored.itemsize, at_end=False)
        file.view(stored, shape).copy_(output)
        files.append(file)
    return files


class _Comparison:
    """One output of PyTorch against the truth, chunk by chunk."""

    def __init__(self, atol: float, rtol: float, any_kind: bool) -> None:
        self.atol, self.rtol, self.any_kind = atol, rtol, any_kind
        self.squares = self.truth_squares = self.largest = 0.0
        self.finite = self.graded = self.non_finite = 0

    def rms(self) -> float:
        """PyTorch's error over the elements where it is within the tolerance."""
        return (self.squares / max(self.graded, 1)) ** 0.5

    def missed(self) -> float:
        """The share of elements with a finite truth that PyTorch misses."""
        return 1 - self.graded / self.finite if self.finite else 0.0

    def floats(self, truth: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Which elements of a chunk PyTorch misses."""
        own = own.double()
        truth_finite, own_finite = torch.isfinite(truth), torch.isfinite(own)
        error = (own - truth).abs_()
        good = error <= self.atol + self.rtol * truth.abs()
        good &= truth_finite & own_finite
        same = (own == truth) | (own.isnan() & truth.isnan())
        if self.any_kind:
            same |= ~truth_finite & ~own_finite
        counted = error[good]
        finite = truth[truth_finite]
        self.non_finite += truth.numel() - finite.numel()
        self.truth_squares += float((finite * finite).sum())
        self.finite += finite.numel()
        self.squares += float((counted * counted).sum())
        self.graded += counted.numel()
        if counted.numel():
            self.largest = max(self.largest, float(counted.max()))
        return ~(good | same)


def _own_misses(
    file: TensorFile | TensorHere,
    truth_dtype: torch.dtype,
    own: torch.Tensor,
    comparison: _Comparison,
    chunk: int,
) -> torch.Tensor | None:
    """Marks of the elements that PyTorch misses, or None when it misses none."""
    count = own.numel()
    truth, own = file.view(truth_dtype, [count]), own.contiguous().flatten()
    marks: torch.Tensor | None = None
    for start in range(0, count, chunk):
        part = slice(start, min(start + chunk, count))
        if truth_dtype.is_floating_point:
            missed = comparison.floats(truth[part], own[part])
        else:
            missed = truth[part] != own[part]
        if bool(missed.any()):
            if marks is None:
                marks = torch.zeros(count, dtype=torch.bool, device=own.device)
            marks[part] = missed
    return marks


def _median_error(file: TensorFile | TensorHere, own: torch.Tensor) -> float:
    """PyTorch's median error over a sample of the elements that are finite on both sides."""
    count = own.numel()
    step = count // SAMPLE | 1  # odd, so that it walks through all rows and columns
    truth = file.view(torch.float64, [count])[::step]
    error = (own.contiguous().flatten()[::step].double() - truth).abs_()
    error = error[torch.isfinite(error)]
    return float(error.median()) if error.numel() else 0.0


def _perturbed(
    problem: LoadedProblem, tensors: list[torch.Tensor], seed: int
) -> list[torch.Tensor]:
    random = random_on(problem.options.place(), seed)
    moved = []
    for spec, tensor in zip(problem.inputs, tensors, strict=True):
        if tensor.is_floating_point() and spec.kind != "random":
            size = TIE_ULPS * ROUNDOFF[tensor.dtype]
            noise = torch.empty(tensor.shape, dtype=torch.float64, device=random.device)
            noise.uniform_(-size, size, generator=random)
            tensor = tensor.double() * (1 + noise)
        moved.append(tensor)
    return moved


def _ties(
    problem: LoadedProblem,
    tensors: list[torch.Tensor],
    files: list[TensorFile | TensorHere],
    traits: list[OutputTraits],
    seed: int,
) -> list[torch.Tensor | None]:
    """Marks of elements that a tiny perturbation moves, for outputs that may jump."""
    marks: list[torch.Tensor | None] = [None] * len(files)
    if not any(trait.jumps for trait in traits):
        return marks
    for round_number in range(TIE_ROUNDS):
        outputs = run_wide(problem, _perturbed(problem, tensors, seed + round_number))
        for i, (dtype, _) in enumerate(problem.outputs):
            if not traits[i].jumps:
                continue
            count = outputs[i].numel()
            moved = outputs[i].contiguous().flatten()
            if dtype.is_floating_point:
                atol, rtol = tolerance(problem, dtype)
                truth = files[i].view(torch.float64, [count])
                near = torch.isclose(moved.double(), truth, rtol, atol, equal_nan=True)
                far = ~near
            else:
                far = moved.to(dtype) != files[i].view(dtype, [count])
            if bool(far.any()):
                before = marks[i]
                marks[i] = far if before is None else before | far
    return marks


def _mark_file(
    problem: LoadedProblem, marks: torch.Tensor | None
) -> TensorFile | TensorHere | None:
    if marks is None:
        return None
    if problem.options.device:
        return TensorHere(marks)
    file = TensorFile(marks.numel(), at_end=False)
    file.view(torch.bool, [marks.numel()]).copy_(marks)
    return file


def _joined(a: torch.Tensor | None, b: torch.Tensor | None) -> torch.Tensor | None:
    return b if a is None else a if b is None else a | b


def compute(
    problem: LoadedProblem,
    tensors: list[torch.Tensor],
    traits: list[OutputTraits],
    wide: bool,
    seed: int,
) -> tuple[list[Truth], bool]:
    """The truths of one input set, and whether they are in float64."""
    outputs: list[torch.Tensor] | None = None
    if wide:
        outputs = _run_wide_if_possible(problem, tensors)
    wide = outputs is not None
    own = run_own(problem, tensors) if outputs is None else None
    files = _store(problem, outputs if outputs is not None else list(own or []))
    del outputs
    if own is None:
        own = run_own(problem, tensors)
    _check_outputs(problem, own)
    ties = _ties(problem, tensors, files, traits, seed) if wide else [None] * len(files)
    truths = []
    for i, (dtype, _) in enumerate(problem.outputs):
        output, own[i] = own[i], torch.empty(0)
        marks, comparison = _grade(problem, files[i], dtype, output, traits[i])
        truths.append(
            Truth(
                files[i],
                _mark_file(problem, _joined(marks, ties[i])),
                (comparison.truth_squares / max(comparison.finite, 1)) ** 0.5,
                comparison.rms(),
                comparison.largest,
                comparison.atol,
                comparison.rtol,
                traits[i].behind_product,
                comparison.non_finite,
            )
        )
    return truths, wide


def _grade(
    problem: LoadedProblem,
    file: TensorFile | TensorHere,
    dtype: torch.dtype,
    own: torch.Tensor,
    traits: OutputTraits,
) -> tuple[torch.Tensor | None, _Comparison]:
    """What PyTorch misses of one output, under a tolerance that is attainable."""
    atol, rtol = tolerance(problem, dtype)
    stored = torch.float64 if dtype.is_floating_point else dtype
    comparison = _Comparison(atol, rtol, traits.behind_product)
    chunk = DEVICE_CHUNK if problem.options.device else CHUNK
    marks = _own_misses(file, stored, own, comparison, chunk)
    attainable = ATTAINABLE_RMS * comparison.rms()
    if dtype.is_floating_point and comparison.missed() > MANY_MISSED:
        typical = _median_error(file, own) / MEDIAN_OF_NORMAL
        attainable = max(attainable, ATTAINABLE_RMS * typical)
    fixed = problem.sidecar.atol is not None or problem.precision() == "kernelbench"
    if attainable > atol and not fixed:
        comparison = _Comparison(attainable, rtol, traits.behind_product)
        marks = _own_misses(file, stored, own, comparison, chunk)
    return marks, comparison


def _check_outputs(problem: LoadedProblem, outputs: list[torch.Tensor]) -> None:
    from problem import ProblemError

    found = [(tensor.dtype, list(tensor.shape)) for tensor in outputs]
    if found != problem.outputs:
        raise ProblemError(
            f"{problem.options.path}: forward() returns other shapes or types for another seed "
            f"({_listed(found)} after {_listed(problem.outputs)}); make them depend on the input "
            "shapes alone"
        )


def _listed(outputs: list[tuple[torch.dtype, list[int]]]) -> str:
    return ", ".join(f"{str(dtype).removeprefix('torch.')}{shape}" for dtype, shape in outputs)
