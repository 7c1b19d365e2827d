# SPDX-License-Identifier: Apache-2.0
"""The launcher that an exported module of device code has, with the driver played on the processor.

What PyTorch knows of the device is stood in for; kernels are those of kernels.cpp.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from with_torch import SOURCE, torch

sys.path.insert(0, os.path.join(SOURCE, "py", "kernelevolve"))
import module_runtime_cuda  # noqa: E402


class Output:
    def __init__(self, *shape: int) -> None:
        self.shape, self.dtype = shape, torch.float32


class Stream:
    cuda_stream = 0


EMPTY = torch.empty


def shared(*shape: Any, **options: Any) -> torch.Tensor:
    """Kernels run in a child there, so what they write lies in memory that is shared."""
    tensor = EMPTY(*shape, **options)
    return tensor.share_memory_() if tensor.numel() > 0 else tensor


def scaling(source: list[Any], target: list[Any], factor: int) -> dict[str, Any]:
    return {
        "kernel": "scale", "grid": [4, 1, 1], "block": [32, 1, 1], "shared": 0,
        "arguments": [source, target, ["integer", factor], ["integer", 100]],
    }


class DeviceCode(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        code = Path(os.environ["KE_FAKE_KERNELS"]).read_bytes()
        (self.folder / "kernel.cubin").write_bytes(code)
        stands_in = {
            "device": lambda device: contextlib.nullcontext(),
            "current_device": lambda: 0,
            "current_stream": Stream,
        }
        patches = [mock.patch.object(torch.cuda, *entry) for entry in stands_in.items()]
        for patch in (*patches, mock.patch.object(torch, "empty", shared)):
            patch.start()
            self.addCleanup(patch.stop)

    def runtime(self, *plans: dict[str, Any]) -> module_runtime_cuda.Runtime:
        load = ctypes.CDLL
        with mock.patch.object(ctypes, "CDLL", lambda name: load(os.environ["KE_FAKE_CUDA"])):
            return module_runtime_cuda.Runtime(
                self.folder, {"code": "kernel.cubin", "plans": list(plans)}
            )

    def test_launches_in_order_through_scratch_memory(self) -> None:
        runtime = self.runtime({
            "scratch_bytes": 1024,
            "launches": [
                scaling(["input", 1], ["scratch", 512], 3),
                scaling(["scratch", 512], ["output", 0], 5),
            ],
        })
        first, second = torch.randn(100), torch.randn(100)
        for _ in range(2):
            (result,) = runtime.run(0, [first, second], [Output(100)])
            torch.testing.assert_close(result, second * 15)

    def test_each_case_has_a_plan(self) -> None:
        runtime = self.runtime(
            *({"scratch_bytes": 0, "launches": [scaling(["input", 0], ["output", 0], factor)]}
              for factor in (2, 7))
        )
        x = torch.randn(100)
        for case, factor in enumerate((2, 7)):
            (result,) = runtime.run(case, [x], [Output(10, 10)])
            torch.testing.assert_close(result, (x * factor).view(10, 10))

    def test_hands_over_aligned_copies(self) -> None:
        plan = {"scratch_bytes": 0, "launches": [scaling(["input", 0], ["output", 0], 2)]}
        whole = torch.randn(400)
        addresses = []
        pointers = module_runtime_cuda._Launch.pointers

        def watched(launch: Any, inputs: list[int], *rest: Any) -> Any:
            addresses.extend(inputs)
            return pointers(launch, inputs, *rest)

        with mock.patch.object(module_runtime_cuda._Launch, "pointers", watched):
            for first in range(0, 256, 16):  # in steps of 64 bytes: most are not aligned
                x = whole[first : first + 100]
                (result,) = self.runtime(plan).run(0, [x], [Output(100)])
                torch.testing.assert_close(result, x * 2)
        own = range(whole.data_ptr(), whole.data_ptr() + 1600)
        for address in addresses:  # a copy lies elsewhere; the processor's are aligned to less
            self.assertTrue(address % 256 == 0 or address not in own)

    def test_says_what_the_driver_says(self) -> None:
        launch = scaling(["input", 0], ["output", 0], 2)
        for change in ({"kernel": "missing"}, {"block": [4096, 1, 1]}):
            plan = {"scratch_bytes": 0, "launches": [{**launch, **change}]}
            with self.assertRaisesRegex(RuntimeError, "CUDA_ERROR"):
                self.runtime(plan).run(0, [torch.randn(100)], [Output(100)])

    def test_asks_for_much_shared_memory_first(self) -> None:
        plan = {"scratch_bytes": 0, "launches": [scaling(["input", 0], ["output", 0], 2)]}
        plan["launches"][0]["shared"] = 96 << 10
        x = torch.randn(100)
        (result,) = self.runtime(plan).run(0, [x], [Output(100)])
        torch.testing.assert_close(result, x * 2)


if __name__ == "__main__":
    unittest.main()
