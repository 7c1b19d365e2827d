# SPDX-License-Identifier: Apache-2.0
"""Comparison in tensors against the same written down element by element."""

from __future__ import annotations

import math
import os
import sys
import unittest

from with_torch import SOURCE, torch

sys.path.insert(0, os.path.join(SOURCE, "py", "kernelevolve"))
from comparison import Comparison, Tolerance, compare  # noqa: E402

STRANGE = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e300]


def take(found: Comparison, index: int, units: float) -> None:
    found.outside += 1
    if units > found.worst_units:
        found.worst_units, found.worst_index = units, index


def one_by_one(
    got: list[float], truth: list[float], ignore: list[bool], tolerance: Tolerance
) -> Comparison:
    found = Comparison(elements=len(got))
    for i, (a, b) in enumerate(zip(got, truth, strict=True)):
        if ignore[i]:
            found.ungraded += 1
        elif math.isfinite(a) and math.isfinite(b):
            error, allowed = abs(a - b), tolerance.atol + tolerance.rtol * abs(b)
            found.graded += 1
            found.sum_squares += error * error
            if error > found.max_abs:
                found.max_abs, found.max_index = error, i
            if error > allowed:
                take(found, i, error / allowed if allowed > 0 else math.inf)
        elif math.isfinite(b):
            found.graded += 1
            if found.max_abs != math.inf:
                found.max_abs, found.max_index = math.inf, i
            take(found, i, math.inf)
        else:
            same = math.isnan(a) if math.isnan(b) else a == b
            if not (not math.isfinite(a) if tolerance.any_non_finite_kind else same):
                take(found, i, math.inf)
    return found


class ComparisonTest(unittest.TestCase):
    def check(self, got: torch.Tensor, truth: torch.Tensor, ignore: torch.Tensor | None,
              tolerance: Tolerance) -> None:
        marks = [False] * got.numel() if ignore is None else ignore.tolist()
        wanted = one_by_one(got.double().tolist(), truth.tolist(), marks, tolerance)
        for chunk in (7, 64, 1 << 20):
            found = compare(got, truth, ignore, tolerance, chunk)
            self.assertAlmostEqual(found.sum_squares, wanted.sum_squares, places=9)
            found.sum_squares = wanted.sum_squares
            # Of equally bad ones any may be named; what is bad must be.
            for index in ("worst_index", "max_index"):
                self.assertEqual(getattr(found, index) < 0, getattr(wanted, index) < 0)
                setattr(found, index, getattr(wanted, index))
            self.assertEqual(found, wanted)

    def test_random_tensors(self) -> None:
        random = torch.Generator().manual_seed(7)
        for round_number in range(60):
            count = int(torch.randint(1, 300, (), generator=random))
            dtype = (torch.float32, torch.float64, torch.float16, torch.bfloat16)[round_number % 4]
            truth = torch.randn(count, generator=random, dtype=torch.float64)
            noise = torch.randn(count, generator=random, dtype=torch.float64) * 1e-3
            got = (truth + noise).to(dtype)
            for values in (truth, got):  # the same places sometimes, others as well
                where = torch.randint(0, count, (3,), generator=random)
                which = torch.randint(0, len(STRANGE), (3,), generator=random)
                values[where] = torch.tensor(STRANGE, dtype=torch.float64)[which].to(values.dtype)
            ignore = torch.rand(count, generator=random) < 0.2 if round_number % 3 else None
            tolerance = Tolerance(1e-3 if round_number % 5 else 0.0, 1e-3, round_number % 2 == 1)
            self.check(got, truth, ignore, tolerance)

    def test_the_worst_is_named(self) -> None:
        truth = torch.zeros(1000, dtype=torch.float64)
        got = torch.zeros(1000)
        got[617], got[20] = 3.0, 1.0
        found = compare(got, truth, None, Tolerance(1e-2, 0), 100)
        self.assertEqual((found.outside, found.worst_index, found.max_index), (2, 617, 617))
        self.assertAlmostEqual(found.worst_units, 300.0, places=3)

    def test_integers_and_booleans_are_exact(self) -> None:
        truth = torch.arange(100)
        got = truth.clone()
        got[55] += 1
        found = compare(got, truth, None, Tolerance(1.0, 1.0))
        self.assertEqual((found.graded, found.outside, found.worst_index), (100, 1, 55))
        ignore = torch.zeros(100, dtype=torch.bool)
        ignore[55] = True
        found = compare(got, truth, ignore, Tolerance(0, 0))
        self.assertEqual((found.graded, found.ungraded, found.outside), (99, 1, 0))

    def test_a_byte_that_is_no_boolean_is_not_true(self) -> None:
        truth = torch.ones(8, dtype=torch.bool)
        got = torch.full((8,), 2, dtype=torch.uint8).view(torch.bool)
        self.assertEqual(compare(got, truth, None, Tolerance(0, 0)).outside, 8)


if __name__ == "__main__":
    unittest.main()
