# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's own errors make of the elementwise tolerance."""

from __future__ import annotations

import os
import sys
import unittest
from types import SimpleNamespace

from with_torch import SOURCE, torch

sys.path.insert(0, os.path.join(SOURCE, "py", "kernelevolve"))
from truth import ATTAINABLE_RMS, TensorHere, _grade  # noqa: E402

COUNT = 60_000
TRAITS = SimpleNamespace(behind_product=True, jumps=False)


def problem(atol: float | None = None, precision: str = "strict") -> SimpleNamespace:
    return SimpleNamespace(
        sidecar=SimpleNamespace(atol=atol, rtol=None),
        precision=lambda: precision,
        options=SimpleNamespace(device=""),
    )


class ToleranceTest(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(5)
        self.truth = torch.randn(COUNT, dtype=torch.float64)

    def noise(self, size: float) -> torch.Tensor:
        return (self.truth + size * torch.randn(COUNT, dtype=torch.float64)).float()

    def grade(self, own: torch.Tensor, of: SimpleNamespace | None = None):
        marks, found = _grade(of or problem(), TensorHere(self.truth), torch.float32, own, TRAITS)
        ungraded = 0 if marks is None else int(marks.sum())
        return ungraded, found

    def test_it_follows_errors_of_every_size_as_good_as_pytorch_is_right(self) -> None:
        for size in (1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.3):
            with self.subTest(size=size):
                ungraded, found = self.grade(self.noise(size))
                self.assertEqual(ungraded, 0)
                want = max(1e-4, ATTAINABLE_RMS * size)
                self.assertLess(abs(found.atol / want - 1), 0.05)
                self.assertLess(abs(found.rms() / size - 1), 0.05) if size > 1e-6 else None
                other = (self.noise(size).double() - self.truth).abs()
                self.assertTrue(bool((other <= found.atol + found.rtol * self.truth.abs()).all()))

    def test_a_third_of_the_elements_that_pytorch_gets_wrong_does_not_widen_it(self) -> None:
        own = self.noise(1e-6)
        own[::3] += 1.0
        ungraded, found = self.grade(own)
        self.assertEqual(ungraded, COUNT // 3)
        self.assertEqual(found.atol, 1e-4)

    def test_what_is_not_finite_does_not_count(self) -> None:
        own = self.noise(1e-2)
        own[:30] = torch.inf
        self.truth[30:60] = torch.nan
        ungraded, found = self.grade(own)
        self.assertEqual(ungraded, 60)
        self.assertLess(abs(found.atol / (ATTAINABLE_RMS * 1e-2) - 1), 0.05)

    def test_a_tolerance_that_was_given_stays(self) -> None:
        own = self.noise(1e-2)
        self.assertEqual(self.grade(own, problem(atol=1e-3))[1].atol, 1e-3)
        self.assertEqual(self.grade(own, problem(precision="kernelbench"))[1].atol, 1e-4)


if __name__ == "__main__":
    unittest.main()
