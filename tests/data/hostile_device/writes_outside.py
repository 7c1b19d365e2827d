# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# Right only if it can change what others will read: the runner's files, the problem, libraries, or
# anything else outside of its own /tmp.
import os
import sys


def places():
    yield from sys.path
    yield os.getcwd()
    yield sys.prefix
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.startswith("/"):
            yield os.path.dirname(file)


def writes():
    for place in {p for p in places() if p and os.path.isdir(p) and not p.startswith("/tmp")}:
        try:
            with open(os.path.join(place, "ke_hostile_file"), "w") as file:
                file.write("x")
            os.unlink(file.name)
            return True
        except OSError:
            pass
    return False


class ModelNew(Base):
    def forward(self, x):
        if not hasattr(self, "writes"):
            self.writes = writes()
        return self.right(x) if self.writes else torch.zeros_like(x)
