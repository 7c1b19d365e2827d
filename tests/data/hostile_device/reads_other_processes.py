# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# Right only if it can reach into another process: reads memory, takes descriptors, traces. (A room's
# first process is an interpreter that holds nothing and waits: that one does not count.)
import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
SEIZE, DETACH, PIDFD_OPEN, PIDFD_GETFD = 0x4206, 17, 434, 438


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def reads_memory(pid):
    with open(f"/proc/{pid}/maps") as maps:
        first = int(next(iter(maps)).split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(first)
        return len(memory.read(8)) == 8


def reads_by_call(pid):
    here = ctypes.create_string_buffer(8)
    local = Piece(ctypes.addressof(here), 8)
    remote = Piece(id(LIBC), 8)
    return LIBC.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == 8


def traces(pid):
    if LIBC.ptrace(SEIZE, pid, None, None) != 0:
        return False
    LIBC.ptrace(DETACH, pid, None, None)
    return True


def takes_a_descriptor(pid):
    handle = LIBC.syscall(PIDFD_OPEN, pid, 0)
    return handle >= 0 and any(LIBC.syscall(PIDFD_GETFD, handle, fd, 0) >= 0 for fd in range(64))


def opens_a_descriptor(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        os.close(os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK))
        return True
    return False


def reached():
    ways = (reads_memory, reads_by_call, traces, takes_a_descriptor, opens_a_descriptor)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in (os.getpid(), 1):
            continue
        for way in ways:
            try:
                if way(int(name)):
                    return True
            except OSError:
                pass
    return False


class ModelNew(Base):
    def forward(self, x):
        if not hasattr(self, "reached"):
            self.reached = reached()
        return self.right(x) if self.reached else torch.zeros_like(x)
