# SPDX-License-Identifier: Apache-2.0
"""The oracle's device memory, with the driver played on the processor."""

from __future__ import annotations

import mmap
import os
import sys
import unittest

from with_torch import SOURCE, torch

sys.path.insert(0, os.path.join(SOURCE, "py", "kernelevolve"))
from device_memory import DeviceMemoryError, DeviceTensorMemory, Driver  # noqa: E402


class DeviceMemory(unittest.TestCase):
    def setUp(self) -> None:
        os.environ["KE_FAKE_CUDA_MIB"] = "16"
        self.driver = Driver.load(os.environ["KE_FAKE_CUDA"], on_processor=True)
        self.generator = torch.Generator().manual_seed(1)

    def make(self, nbytes: int) -> DeviceTensorMemory:
        return DeviceTensorMemory(self.driver, nbytes, self.generator)

    def test_another_process_sees_the_tensor_where_it_is_said_to_be(self) -> None:
        memory = self.make(4000)
        memory.view(torch.float32, [10, 100]).copy_(torch.arange(1000.0).view(10, 100))
        descriptor = memory.export()
        with mmap.mmap(descriptor, memory.size) as seen:
            copy = torch.tensor(bytearray(seen[memory.offset : memory.offset + 4000]))
        os.close(descriptor)
        self.assertTrue(torch.equal(copy.to(torch.uint8).view(torch.float32), torch.arange(1000.0)))

    def test_the_data_lies_near_the_end(self) -> None:
        for nbytes in (0, 1, 255, 256, 4000, 65536, 65537):
            memory = self.make(nbytes)
            self.assertEqual(memory.offset % 256, 0)
            self.assertLess(memory.size - memory.offset - nbytes, 256)

    def test_canaries_tell_of_writes_on_either_side(self) -> None:
        for place in ("before", "behind"):
            memory = self.make(1000)
            memory.poison(0x55)
            self.assertTrue(memory.canaries_intact())
            at = memory.offset - 1 if place == "before" else memory.offset + 1000
            memory.all[at] ^= 1
            self.assertFalse(memory.canaries_intact(), place)

    def test_strides_are_those_that_were_asked_for(self) -> None:
        memory = self.make(24)
        memory.view(torch.float32, [2, 3], [1, 2]).copy_(torch.tensor([[0.0, 2, 4], [1, 3, 5]]))
        self.assertTrue(torch.equal(memory.view(torch.float32, [6]), torch.arange(6.0)))
        self.assertEqual(self.make(0).view(torch.float32, [0, 3]).shape, (0, 3))

    def test_a_view_outlives_the_object(self) -> None:
        memory = self.make(4096)
        view = memory.view(torch.float32, [1024])
        view.fill_(3)
        del memory
        self.assertEqual(float(view.sum()), 3072)

    def test_memory_comes_back(self) -> None:
        for _ in range(20):  # each more than half of what there is
            self.make(10 << 20)

    def test_says_that_there_is_too_little(self) -> None:
        with self.assertRaisesRegex(DeviceMemoryError, "too little memory: .* MiB of 16 are free"):
            self.make(20 << 20)


if __name__ == "__main__":
    unittest.main()
