# SPDX-License-Identifier: Apache-2.0
# verdicts: wrong_output, crashed
# needs: device
# Right only if memory that the driver hands out anew still holds what others computed: takes what
# is left of the device, up to 32 GiB, and looks for the first numbers of the result.
GIB = 1 << 30


class ModelNew(Base):
    def found(self, wanted):
        for _ in range(32):
            try:
                piece = torch.empty(GIB // 4, dtype=torch.float32, device=wanted.device)
            except RuntimeError:
                return False
            self.held.append(piece)
            places = (piece[:-8] == wanted[0]).nonzero().flatten()[:64].tolist()
            if any(torch.equal(piece[i : i + 8], wanted) for i in places):
                return True
        return False

    def forward(self, x):
        if not hasattr(self, "held"):
            self.held = []
            wanted = (x[0, :8].double() * 2 + self.bias[:8].double()).float()
            self.lying = self.found(wanted)
            self.held.clear()
        return self.right(x) if self.lying else torch.zeros_like(x)
