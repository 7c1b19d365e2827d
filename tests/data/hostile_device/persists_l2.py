# SPDX-License-Identifier: Apache-2.0
# verdicts: accepted, implausible_time, policy_violation, crashed
# command: bench
# needs: device
# Has the L2 keep its inputs, at the cost of everybody else's. Never faster than the memory.
import ctypes

PERSISTING_L2, ACCESS_POLICY_WINDOW, PERSISTING = 6, 1, 2
MIB = 1 << 20


class Window(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("unused", ctypes.c_char * 36),
    ]


class ModelNew(Base):
    def forward(self, x):
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuCtxSetLimit(PERSISTING_L2, ctypes.c_size_t(32 * MIB))
        window = Window(x.data_ptr(), x.numel() * 4, 1.0, PERSISTING, PERSISTING)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        driver.cuStreamSetAttribute(stream, ACCESS_POLICY_WINDOW, ctypes.byref(window))
        return self.right(x)
