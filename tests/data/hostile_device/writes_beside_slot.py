# SPDX-License-Identifier: Apache-2.0
# verdicts: out_of_bounds
# needs: device
# Finds the outputs' memory in the runner and writes right before them.
import ctypes
import gc


class ModelNew(Base):
    def forward(self, x):
        driver = ctypes.CDLL("libcuda.so.1")
        for thing in gc.get_objects():
            if type(thing).__name__ == "Slot":
                for memory in thing.outputs:
                    address = memory.view(torch.uint8, [4]).data_ptr() - 4
                    driver.cuMemsetD8_v2(ctypes.c_ulonglong(address), 0x5A, ctypes.c_size_t(4))
        return self.right(x)
