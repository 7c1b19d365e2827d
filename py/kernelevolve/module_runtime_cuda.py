# SPDX-License-Identifier: Apache-2.0
"""Launches a proved kernel's machine code through the CUDA driver, for the module beside it.

What is launched is in manifest.json: for each shape case its kernels, in order, with grids, blocks
and arguments. Launches go to PyTorch's current stream; scratch memory is PyTorch's.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import Any

import torch

ALIGNMENT = 256
SPARE = 32  # zeros behind the arguments, for parameters that are not handed over
DYNAMIC_SHARED_MAX = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
STATIC_SHARED_MAX = 48 << 10
INPUT, OUTPUT, SCRATCH, INTEGER = "input", "output", "scratch", "integer"


class _Launch:
    """One kernel of a case on one device; the values of integers are filled in once."""

    def __init__(self, driver: Any, module: Any, entry: dict[str, Any]) -> None:
        self.function = ctypes.c_void_p()
        name = entry["kernel"].encode()
        _must(driver, driver.cuModuleGetFunction(ctypes.byref(self.function), module, name))
        if entry["shared"] > STATIC_SHARED_MAX:
            status = driver.cuFuncSetAttribute(self.function, DYNAMIC_SHARED_MAX, entry["shared"])
            _must(driver, status)
        self.sizes = [ctypes.c_uint(n) for n in (*entry["grid"], *entry["block"], entry["shared"])]
        self.arguments: list[tuple[str, int]] = [(kind, n) for kind, n in entry["arguments"]]

    def pointers(self, inputs: list[int], outputs: list[int], scratch: int) -> tuple[Any, Any]:
        values = (ctypes.c_int64 * (len(self.arguments) + SPARE))()
        for i, (kind, n) in enumerate(self.arguments):
            if kind == INPUT:
                values[i] = inputs[n]
            elif kind == OUTPUT:
                values[i] = outputs[n]
            else:
                values[i] = scratch + n if kind == SCRATCH else n
        size = ctypes.sizeof(ctypes.c_int64)
        first = ctypes.addressof(values)
        addresses = [first + i * size for i in range(len(values))]
        return (ctypes.c_void_p * len(addresses))(*addresses), values


def _must(driver: Any, status: int) -> None:
    if status == 0:
        return
    text = ctypes.c_char_p()
    driver.cuGetErrorName(status, ctypes.byref(text))
    name = text.value.decode() if text.value else f"error {status}"
    raise RuntimeError(f"the CUDA driver refuses the proved kernel: {name}")


class Runtime:
    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.code = (folder / manifest["code"]).read_bytes()
        self.plans: list[dict[str, Any]] = manifest["plans"]
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.loaded: dict[int, Any] = {}  # by device
        self.launches: dict[tuple[int, int], list[_Launch]] = {}  # by device and case
        self.lock = threading.Lock()

    def run(self, case: int, inputs: list[torch.Tensor], outputs: list[Any]) -> list[torch.Tensor]:
        """The results for inputs that fit the case; outputs: their specifications."""
        device = inputs[0].device if inputs else torch.device("cuda")
        with torch.cuda.device(device):
            held = [t if t.data_ptr() % ALIGNMENT == 0 else t.clone() for t in inputs]
            results = [torch.empty(o.shape, dtype=o.dtype, device=device) for o in outputs]
            size = self.plans[case]["scratch_bytes"]
            scratch = torch.empty(size, dtype=torch.uint8, device=device)
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            addresses = [t.data_ptr() for t in held], [t.data_ptr() for t in results]
            for launch in self._launches(torch.cuda.current_device(), case):
                pointers, values = launch.pointers(*addresses, scratch.data_ptr())
                sizes = launch.sizes
                status = self.driver.cuLaunchKernel(
                    launch.function, *sizes, stream, pointers, ctypes.c_void_p()
                )
                _must(self.driver, status)
                del values  # the driver has copied them
        return results

    def _launches(self, device: int, case: int) -> list[_Launch]:
        with self.lock:
            if device not in self.loaded:
                module = ctypes.c_void_p()
                _must(self.driver, self.driver.cuModuleLoadData(ctypes.byref(module), self.code))
                self.loaded[device] = module
            if (device, case) not in self.launches:
                self.launches[device, case] = [
                    _Launch(self.driver, self.loaded[device], entry)
                    for entry in self.plans[case]["launches"]
                ]
            return self.launches[device, case]
