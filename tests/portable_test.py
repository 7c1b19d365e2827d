# SPDX-License-Identifier: Apache-2.0
"""The portable binary needs glibc alone, and no symbol of it newer than GLIBC_2.36."""

from __future__ import annotations

import re
import subprocess
import sys

NEWEST = (2, 36)
ALLOWED = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}


def objdump(flag: str, binary: str) -> str:
    return subprocess.run(
        ["objdump", flag, binary], capture_output=True, text=True, check=True
    ).stdout


def main() -> int:
    binary = sys.argv[1]
    needed = set(re.findall(r"NEEDED\s+(\S+)", objdump("-p", binary)))
    versions = set(re.findall(r"GLIBC_(\d+)\.(\d+)", objdump("-T", binary)))
    newer = {v for v in versions if (int(v[0]), int(v[1])) > NEWEST}
    assert needed and versions, "objdump found nothing"
    for library in sorted(needed - ALLOWED):
        print(f"{binary} needs {library}, which is not part of glibc", file=sys.stderr)
    for major, minor in sorted(newer):
        print(f"{binary} needs a symbol of GLIBC_{major}.{minor}", file=sys.stderr)
    return 1 if needed - ALLOWED or newer else 0


if __name__ == "__main__":
    sys.exit(main())
