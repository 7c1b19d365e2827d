# SPDX-License-Identifier: Apache-2.0
"""Compares outputs with truths where they lie, for memory that the judge cannot see.

Counts and sums what src/eval/compare.cpp does; the judge decides on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

CHUNK = 1 << 26  # elements at a time, to keep temporaries within a few GiB


@dataclass
class Comparison:
    """What was seen over the graded elements of one output; see compare.hpp."""

    elements: int = 0
    graded: int = 0
    ungraded: int = 0
    sum_squares: float = 0.0
    max_abs: float = 0.0
    max_index: int = -1
    outside: int = 0
    worst_units: float = 0.0
    worst_index: int = -1

    def saw_outside(self, units: torch.Tensor, where: torch.Tensor) -> None:
        """Elements `where` (their positions) are wrong by so many tolerances."""
        if where.numel() == 0:
            return
        self.outside += where.numel()
        worst = int(units.argmax())
        if float(units[worst]) > self.worst_units:
            self.worst_units, self.worst_index = float(units[worst]), int(where[worst])


@dataclass
class Tolerance:
    atol: float
    rtol: float
    any_non_finite_kind: bool = False


def compare(
    got: torch.Tensor,
    truth: torch.Tensor,
    ignore: torch.Tensor | None,
    tolerance: Tolerance,
    chunk: int = CHUNK,
) -> Comparison:
    """`got` in the output's type, `truth` in float64 for floating outputs, else in that type;
    `ignore` marks what is not graded. All on one device, of one number of elements."""
    found = Comparison(elements=got.numel())
    got, truth = got.reshape(-1), truth.reshape(-1)
    marks = None if ignore is None else ignore.reshape(-1)
    compare_part = _compare_floats if got.dtype.is_floating_point else _compare_exactly
    for start in range(0, got.numel(), chunk):
        part = slice(start, min(start + chunk, got.numel()))
        graded = None if marks is None else ~marks[part]
        if graded is not None:
            found.ungraded += int((~graded).sum())
        compare_part(found, got[part], truth[part], graded, tolerance, start)
    return found


def _compare_exactly(
    found: Comparison,
    got: torch.Tensor,
    truth: torch.Tensor,
    graded: torch.Tensor | None,
    _: Tolerance,
    start: int,
) -> None:
    # Booleans are bytes, of which a kernel may write any: only their bits say that they are equal.
    if got.dtype == torch.bool:
        got, truth = got.view(torch.uint8), truth.view(torch.uint8)
    wrong = got != truth
    if graded is not None:
        wrong &= graded
    found.graded += got.numel() if graded is None else int(graded.sum())
    where = wrong.nonzero().flatten()
    found.saw_outside(torch.full_like(where, math.inf, dtype=torch.float64), where + start)


def _compare_floats(
    found: Comparison,
    got: torch.Tensor,
    truth: torch.Tensor,
    graded: torch.Tensor | None,
    tolerance: Tolerance,
    start: int,
) -> None:
    got = got.double()
    finite = truth.isfinite() & got.isfinite()
    if graded is None:
        graded = torch.ones_like(finite)
    counted = finite & graded
    error = (got - truth).abs_()
    zero = torch.zeros((), dtype=torch.float64, device=got.device)
    error = torch.where(counted, error, zero)
    found.graded += int(counted.sum())
    found.sum_squares += float(error.square().sum())
    largest = int(error.argmax())
    if float(error[largest]) > found.max_abs:
        found.max_abs, found.max_index = float(error[largest]), start + largest

    allowed = tolerance.atol + tolerance.rtol * truth.abs()
    where = (counted & (error > allowed)).nonzero().flatten()
    units = error[where] / allowed[where]  # infinite where nothing is allowed
    found.saw_outside(units, where + start)
    _compare_non_finite(found, got, truth, graded & ~finite, tolerance, start)


def _compare_non_finite(
    found: Comparison,
    got: torch.Tensor,
    truth: torch.Tensor,
    strange: torch.Tensor,
    tolerance: Tolerance,
    start: int,
) -> None:
    """Elements where the truth, or what was got, is not finite."""
    where = strange.nonzero().flatten()
    if where.numel() == 0:
        return
    got, truth = got[where], truth[where]
    unexpected = truth.isfinite()
    found.graded += int(unexpected.sum())
    if bool(unexpected.any()) and found.max_abs != math.inf:
        found.max_abs = math.inf
        found.max_index = start + int(where[unexpected][0])
    if tolerance.any_non_finite_kind:
        right = ~got.isfinite()
    else:
        right = (got == truth) | (got.isnan() & truth.isnan())
    wrong = where[unexpected | ~right]
    found.saw_outside(torch.full_like(wrong, math.inf, dtype=torch.float64), wrong + start)
