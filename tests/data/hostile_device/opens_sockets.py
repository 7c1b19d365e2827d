# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# Right only if somebody can be called: an address that is nobody's, or a socket of this machine.
import socket


def called():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.connect(("192.0.2.1", 9))
            return True
    except OSError:
        pass
    try:
        with open("/proc/net/unix") as lines:
            names = [line.split()[7] for line in lines if len(line.split()) > 7]
    except OSError:
        names = []
    for name in names:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
                caller.connect("\0" + name[1:] if name.startswith("@") else name)
                return True
        except OSError:
            pass
    return False


class ModelNew(Base):
    def forward(self, x):
        return self.right(x) if called() else torch.zeros_like(x)
