# SPDX-License-Identifier: Apache-2.0
"""Device memory that carries tensors between processes, as memory.py's files do on the processor.

Made by the CUDA driver's virtual memory functions (cuMemCreate, cuMemMap), so that it can be handed
on as a file descriptor, mapped for reading alone elsewhere, and lies between addresses that nothing
is mapped to. It never comes out of a caching allocator. See the driver API's reference, "Virtual
Memory Management"; the layouts are those of src/os/cuda_api.hpp.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

from memory import dense_strides

ALIGNMENT = 256  # of the data's offset; also the bound on the bytes between data and memory end
POSIX_DESCRIPTOR = 1
READ, READ_WRITE = 1, 3
OUT_OF_MEMORY = 2


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProperties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class AccessDescription(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class DeviceMemoryError(RuntimeError):
    """What the driver refused."""


@dataclass
class Driver:
    """The driver's functions for memory. `on_processor`: it is played there (tests)."""

    functions: Any
    ordinal: int = 0
    on_processor: bool = False

    @staticmethod
    def load(path: str = "libcuda.so.1", on_processor: bool = False) -> Driver:
        functions = ctypes.CDLL(path)
        pointer, size, wide = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ulonglong
        signatures = {
            "cuMemGetAllocationGranularity": (pointer, pointer, ctypes.c_int),
            "cuMemCreate": (pointer, size, pointer, wide),
            "cuMemRelease": (wide,),
            "cuMemAddressReserve": (pointer, size, size, wide, wide),
            "cuMemAddressFree": (wide, size),
            "cuMemMap": (wide, size, size, wide, wide),
            "cuMemUnmap": (wide, size),
            "cuMemSetAccess": (wide, size, pointer, size),
            "cuMemExportToShareableHandle": (pointer, wide, ctypes.c_int, wide),
            "cuMemImportFromShareableHandle": (pointer, pointer, ctypes.c_int),
            "cuMemGetInfo_v2": (pointer, pointer),
        }
        for name, arguments in signatures.items():
            function = getattr(functions, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
        return Driver(functions, on_processor=on_processor)

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self.functions, name)(*arguments)
        if status == OUT_OF_MEMORY:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            self.functions.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
            raise DeviceMemoryError(
                f"the device has too little memory: {free.value >> 20} MiB of "
                f"{total.value >> 20} are free"
            )
        if status != 0:
            raise DeviceMemoryError(f"{name} failed with error {status}")

    def properties(self) -> AllocationProperties:
        return AllocationProperties(1, POSIX_DESCRIPTOR, Location(1, self.ordinal), None)

    def granularity(self) -> int:
        found = ctypes.c_size_t()
        properties = self.properties()
        self.call(
            "cuMemGetAllocationGranularity", ctypes.byref(found), ctypes.byref(properties), 0
        )
        return max(found.value, 1)


class _Block:
    """A mapped allocation as a tensor of bytes; unmapped when the last view of it goes.

    Of another process's memory, when a descriptor of it is given.
    """

    def __init__(
        self, driver: Driver, nbytes: int, fd: int | None = None, writable: bool = True
    ) -> None:
        self.driver = driver
        step = driver.granularity()
        self.size = max((nbytes + step - 1) // step * step, step)
        self.handle, self.reserved, self.mapped = ctypes.c_ulonglong(), ctypes.c_ulonglong(), False
        handle, properties = ctypes.byref(self.handle), driver.properties()
        if fd is None:
            driver.call("cuMemCreate", handle, self.size, ctypes.byref(properties), 0)
        else:  # the interface takes the descriptor where it takes a pointer
            driver.call("cuMemImportFromShareableHandle", handle, fd, POSIX_DESCRIPTOR)
        self.reserved_size = self.size + 2 * step
        driver.call(
            "cuMemAddressReserve", ctypes.byref(self.reserved), self.reserved_size, 0, 0, 0
        )
        self.address = self.reserved.value + step
        driver.call("cuMemMap", self.address, self.size, 0, self.handle.value, 0)
        self.mapped = True
        allowed = READ_WRITE if writable else READ
        access = AccessDescription(Location(1, driver.ordinal), allowed)
        driver.call("cuMemSetAccess", self.address, self.size, ctypes.byref(access), 1)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.size,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }

    def bytes(self) -> torch.Tensor:
        if not self.driver.on_processor:
            return torch.as_tensor(self, device=f"cuda:{self.driver.ordinal}")
        block = (ctypes.c_ubyte * self.size).from_address(self.address)
        block._keeps = self  # the tensor keeps the array, and the array keeps the mapping
        return torch.frombuffer(block, dtype=torch.uint8)

    def export(self) -> int:
        descriptor = ctypes.c_int(-1)
        self.driver.call(
            "cuMemExportToShareableHandle",
            ctypes.byref(descriptor),
            self.handle.value,
            POSIX_DESCRIPTOR,
            0,
        )
        return descriptor.value

    def __del__(self) -> None:
        functions = self.driver.functions
        if self.mapped:
            functions.cuMemUnmap(self.address, self.size)
        if self.reserved.value:
            functions.cuMemAddressFree(self.reserved.value, self.reserved_size)
        if self.handle.value:
            functions.cuMemRelease(self.handle.value)


class DeviceTensorMemory:
    """One tensor's bytes on the device, near the end of its memory, with canary around them."""

    def __init__(self, driver: Driver, nbytes: int, generator: torch.Generator) -> None:
        self.nbytes = nbytes
        self.block = _Block(driver, nbytes)
        self.size = self.block.size
        self.offset = (self.size - nbytes) // ALIGNMENT * ALIGNMENT
        self.all = self.block.bytes()
        self.canaries = [self._canary(0, self.offset, generator)]
        self.canaries.append(self._canary(self.offset + nbytes, self.size, generator))

    @staticmethod
    def from_descriptor(
        driver: Driver, fd: int, memory_bytes: int, offset: int, nbytes: int, writable: bool
    ) -> DeviceTensorMemory:
        """A tensor in memory of another process, without canaries. The descriptor stays open."""
        made = object.__new__(DeviceTensorMemory)
        made.nbytes, made.offset = nbytes, offset
        made.block = _Block(driver, memory_bytes, fd, writable)
        made.size, made.all, made.canaries = made.block.size, made.block.bytes(), []
        return made

    def _canary(self, begin: int, end: int, generator: torch.Generator) -> torch.Tensor:
        values = torch.randint(
            0, 256, (end - begin,), dtype=torch.uint8, generator=generator, device=self.all.device
        )
        self.all[begin:end].copy_(values)
        return values

    def canaries_intact(self) -> bool:
        tail = self.offset + self.nbytes
        around = (self.all[: self.offset], self.all[tail:])
        return all(torch.equal(a, b) for a, b in zip(around, self.canaries, strict=True))

    def poison(self, value: int) -> None:
        self.all[self.offset : self.offset + self.nbytes].fill_(value)

    def view(
        self, dtype: torch.dtype, shape: list[int], strides: list[int] | None = None
    ) -> torch.Tensor:
        """The tensor in this memory; writes go there."""
        if self.nbytes == 0:
            return torch.empty_strided(
                shape, strides or dense_strides(shape), dtype=dtype, device=self.all.device
            )
        flat = self.all[self.offset : self.offset + self.nbytes].view(dtype)
        return flat.as_strided(shape, strides or dense_strides(shape), flat.storage_offset())

    def export(self) -> int:
        """A descriptor of the memory, the caller's to close."""
        return self.block.export()
