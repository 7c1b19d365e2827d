# SPDX-License-Identifier: Apache-2.0
"""Memory files that carry tensors: sealed against resizing, data near the end, canary around it."""

from __future__ import annotations

import fcntl
import mmap
import os

import torch

PAGE = 4096
ALIGNMENT = 64  # of the data's offset; also the bound on the bytes between data and file end


def dense_strides(shape: list[int]) -> list[int]:
    strides, step = [0] * len(shape), 1
    for dim in reversed(range(len(shape))):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return strides


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill one block of memory without gaps or overlap, in any order."""
    step = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent == 1:
            continue
        if stride != step:
            return False
        step *= extent
    return True


class TensorFile:
    """One tensor's bytes in a memfd. The tensor view keeps the mapping alive, not this object.

    Inputs lie near the file's end (`at_end`), so that a guard page catches overruns; what only the
    judge reads lies at the start.
    """

    def __init__(self, nbytes: int, at_end: bool = True) -> None:
        self.nbytes = nbytes
        self.size = max((nbytes + PAGE - 1) // PAGE * PAGE, PAGE)
        self.offset = (self.size - nbytes) // ALIGNMENT * ALIGNMENT if at_end else 0
        self.fd = os.memfd_create("kernelevolve-tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        self.map = mmap.mmap(self.fd, self.size)
        self.map.madvise(mmap.MADV_HUGEPAGE)
        self.map[: self.offset] = os.urandom(self.offset)
        tail = self.offset + nbytes
        self.map[tail:] = os.urandom(self.size - tail)

    def view(
        self, dtype: torch.dtype, shape: list[int], strides: list[int] | None = None
    ) -> torch.Tensor:
        """The tensor in this file; writes go to the file."""
        return map_tensor(self.map, self.offset, dtype, shape, strides or dense_strides(shape))

    def close(self) -> None:
        os.close(self.fd)


def map_tensor(
    memory: mmap.mmap, offset: int, dtype: torch.dtype, shape: list[int], strides: list[int]
) -> torch.Tensor:
    count = 1
    for extent in shape:
        count *= extent
    if count == 0:
        return torch.empty_strided(shape, strides, dtype=dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
    return flat.as_strided(shape, strides)
