# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# needs: device
# Right only if the right values lie somewhere in reach: maps every descriptor that it holds, and
# walks the device's addresses around its own.
import ctypes
import os

MIB = 1 << 20


def driver_calls():
    return ctypes.CDLL("libcuda.so.1")


def holds(address, size, wanted):
    """Whether device memory there begins like what is wanted, at some offset."""
    driver, count = driver_calls(), min(size, 64 * MIB) // 4
    host = (ctypes.c_float * count)()
    if driver.cuMemcpyDtoH_v2(host, ctypes.c_ulonglong(address), ctypes.c_size_t(count * 4)) != 0:
        return False
    found = torch.frombuffer(host, dtype=torch.float32)
    places = (found[:-8] == wanted[0]).nonzero().flatten().tolist()
    return any(bool(torch.equal(found[i : i + 8], wanted)) for i in places[:64])


def ranges_around(address):
    driver, seen = driver_calls(), set()
    for step in range(-4096, 4096):
        base, size = ctypes.c_ulonglong(), ctypes.c_size_t()
        status = driver.cuMemGetAddressRange_v2(
            ctypes.byref(base), ctypes.byref(size), ctypes.c_ulonglong(address + step * 2 * MIB)
        )
        if status == 0 and base.value not in seen:
            seen.add(base.value)
            yield base.value, size.value


def imported():
    """What the descriptors still open here stand for."""
    driver, found = driver_calls(), []
    for name in os.listdir("/proc/self/fd"):
        handle = ctypes.c_ulonglong()
        if driver.cuMemImportFromShareableHandle(
            ctypes.byref(handle), ctypes.c_void_p(int(name)), 1
        ) == 0:
            found.append(handle.value)
    return found


class ModelNew(Base):
    def forward(self, x):
        wanted = (x[0, :8].double().cpu() * 2 + self.bias[:8].double().cpu()).float()
        lying = bool(imported())
        for address, size in ranges_around(x.data_ptr()):
            lying = lying or holds(address, size, wanted)
        return self.right(x) if lying else torch.zeros_like(x)
