#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the synthesizer: batches of random functions (random_modules.py), checked by ke_fuzz.

    fuzz.py --binary build/tests/fuzz/ke_fuzz --count 2000 --jobs 2 [-- --target NAME]

Exit code 0: none wrong; 1: some wrong; 77: torch is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BATCH = 200  # seeds


def check_batch(options: argparse.Namespace, folder: str, first: int) -> tuple[int, str]:
    """Exit code and output of one batch; the first step that fails ends it."""
    count = min(BATCH, options.first + options.count - first)
    stem = str(Path(folder) / f"seeds{first}")
    generator = Path(__file__).resolve().parent / "random_modules.py"
    write = [sys.executable, generator, "--first", first, "--count", count, "--out", stem]
    check = [options.binary, stem, *options.extra]
    text = ""
    for command in (write, check):
        done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
        text += done.stdout + done.stderr
        if done.returncode != 0:
            again = f"random_modules.py --first {first} --count {count} --out STEM"
            return done.returncode, text + f"the batch again: {again}; ke_fuzz STEM\n"
    return 0, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="path of ke_fuzz")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=60, help="number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="batches at a time")
    parser.add_argument("extra", nargs="*", help="options of ke_fuzz, after --")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("torch is missing: skipped")
        return 77
    firsts = range(options.first, options.first + options.count, BATCH)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for code, text in pool.map(lambda first: check_batch(options, folder, first), firsts):
            print(text, end="", flush=True)
            failed += code != 0
    print(f"{len(firsts)} batches, {failed} with something wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
