# SPDX-License-Identifier: Apache-2.0
# verdicts: crashed, wrong_output
# needs: device
# Destroys the context that it shares with the runner.
import ctypes


class ModelNew(Base):
    def forward(self, x):
        y = self.right(x)
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuDevicePrimaryCtxReset_v2(ctypes.c_int(0))
        return y
