# SPDX-License-Identifier: Apache-2.0
"""The judge examined on a real GPU by candidates of known verdicts, tests/data/hostile_device.

    hostile_check.py KERNELEVOLVE [--only GLOB] [--jobs 8] [--slow] [--out RESULTS.jsonl]
    hostile_check.py KERNELEVOLVE --compile     only whether device code compiles: needs no device

Each file begins with what is right for it: `verdicts:`, and where they differ from the default
`problem:`, `command:` (verify or bench), `claims_at_most:` (the speed-up beyond which it would have
lied), `alone: yes` and `slow: yes` (left out without --slow). An accepted one may claim no time far
below the problem's physical floor. In the end an honest kernel of each kind is judged again and no
process may be left. Exits 1 if anything is not as it should be. Not a ctest: it needs a device.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parent.parent / "data" / "hostile_device"
TARGETS = {".cu": "cuda", ".py": "triton"}
STEP_SECONDS = 110
HONEST = ("honest.cu", "honest_library.py", "honest_triton.py")
FLOOR_SHARE = 2 / 3  # the L2 may serve some of what rotates through it
LEFT_BEHIND = b"ke_hostile_"


@dataclass
class Case:
    path: Path
    verdicts: list[str]
    options: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def problem(self) -> Path:
        return CORPUS / "problems" / self.options.get("problem", "scale_shift.py")


def read_case(path: Path) -> Case:
    options: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[:9]:
        found = re.fullmatch(r"(?:#|//) ([a-z_]+): (.+)", line)
        if found:
            options[found[1]] = found[2]
    verdicts = options.pop("verdicts", "")
    if not verdicts:
        raise SystemExit(f"{path.name} does not begin with its verdicts")
    return Case(path, verdicts.split(", "), options)


def corpus(only: str) -> list[Case]:
    files = [p for p in sorted(CORPUS.iterdir()) if p.suffix in TARGETS and p.stem != "preamble"]
    return [read_case(p) for p in files if fnmatch.fnmatch(p.name, only)]


def source_of(case: Case) -> str:
    text = case.path.read_text(encoding="utf-8")
    if case.path.suffix == ".py" and "problem" not in case.options:
        text = (CORPUS / "preamble.py").read_text(encoding="utf-8") + text
    return text


@dataclass
class Outcome:
    case: Case
    report: dict[str, Any] | None  # what the judge printed
    code: int
    said: str  # of stderr, when there is no report
    seconds: float

    def wrong(self) -> str:
        """What is not as it should be; empty when all is."""
        if self.report is None:
            return f"no verdict (exit code {self.code}): {self.said}"
        verdict = self.report.get("verdict")
        if verdict not in self.case.verdicts:
            return f"should be {' or '.join(self.case.verdicts)}"
        if verdict != "accepted":
            return "" if self.code == 1 else f"exit code {self.code}"
        return self._dishonest_claim()

    def _dishonest_claim(self) -> str:
        assert self.report is not None
        took, floor = self.report.get("time_ns"), self.report.get("floor_ns")
        if took and floor and took < FLOOR_SHARE * floor:
            return f"claims {took} ns, far below the floor of {floor}"
        most = self.case.options.get("claims_at_most")
        claimed = [self.report.get(f"speedup_vs_{kind}") for kind in ("eager", "compile")]
        claim = min((c for c in claimed if c), default=0.0)
        if most and claim > float(most):
            return f"claims a speed-up of {claim:.2f} for more work than PyTorch does"
        return "" if self.code == 0 else f"exit code {self.code}"


def judge(program: str, case: Case, homes: queue.Queue[Path]) -> Outcome:
    home = homes.get()  # one after the other share a workspace, and what was compiled there
    kernel = home / f"kernel{case.path.suffix}"
    kernel.write_text(source_of(case), encoding="utf-8")
    command = [program, case.options.get("command", "verify"), str(case.problem), str(kernel),
               "--target", TARGETS[case.path.suffix], "--json", "--workspace", str(home / "w")]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_SECONDS,
                              cwd=home, check=False)
    except subprocess.TimeoutExpired:
        return Outcome(case, None, 124, f"still running after {STEP_SECONDS} s", STEP_SECONDS)
    finally:
        homes.put(home)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = None
    said = " ".join(done.stderr.split())[-200:]
    return Outcome(case, report, done.returncode, said, time.monotonic() - start)


def show(outcome: Outcome, out: Any) -> bool:
    report, wrong = outcome.report or {}, outcome.wrong()
    verdict, detail = report.get("verdict", "none"), report.get("detail") or ""
    took = report.get("time_ns")
    figures = f" [{took} ns, {report.get('speedup_vs_eager') or 0:.2f} x eager]" if took else ""
    print(f"{'NOT OK' if wrong else 'ok':6} {outcome.case.name:32} {verdict:17} "
          f"{outcome.seconds:5.1f} s  {wrong or detail[:90]}{figures}", flush=True)
    if out:
        row = {"candidate": outcome.case.name, "ok": not wrong, "wrong": wrong,
               "allowed": outcome.case.verdicts, "seconds": round(outcome.seconds, 2), **report}
        out.write(json.dumps(row) + "\n")
        out.flush()
    return not wrong


def homes_in(folder: Path, count: int) -> queue.Queue[Path]:
    homes: queue.Queue[Path] = queue.Queue()
    for i in range(count):
        home = folder / str(i)
        home.mkdir()
        homes.put(home)
    return homes


def judge_all(program: str, cases: list[Case], jobs: int, homes: Any, out: Any) -> bool:
    """Those that disturb others one by one, after all others."""
    fine = True
    for alone in (False, True):
        chosen = [c for c in cases if (c.options.get("alone") == "yes") == alone]
        with concurrent.futures.ThreadPoolExecutor(1 if alone else jobs) as pool:
            pending = [pool.submit(judge, program, case, homes) for case in chosen]
            for one in concurrent.futures.as_completed(pending):
                fine = show(one.result(), out) and fine
    return fine


def left_behind() -> list[str]:
    """Processes of candidates that outlived their rooms."""
    found = []
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "cmdline").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        if LEFT_BEHIND in words:
            found.append(f"process {name} is left: {words.replace(bytes(1), b' ')[:80]!r}")
    return found


def compiles(program: str, cases: list[Case]) -> bool:
    """Device code alone, by the program's own compiler: what may be refused is, the rest is not."""
    fine = True
    nvrtc = os.environ.get("KE_NVRTC", "libnvrtc.so")
    for case in (c for c in cases if c.path.suffix == ".cu"):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [program, "__compile", "cuda", "--nvrtc", nvrtc, "--arch", "sm_90a",
                 str(case.path), f"{folder}/out"],
                capture_output=True, text=True, timeout=STEP_SECONDS, check=False,
            )
        refused = "compile_error" in case.verdicts
        wrong = done.returncode > 1 or (done.returncode == 1 and not refused)
        fine = fine and not wrong
        print(f"{'NOT OK' if wrong else 'ok':6} {case.name:32} {done.returncode} "
              f"{' '.join(done.stderr.split())[:90] if done.returncode else ''}")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--out")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    program = str(Path(arguments.program).resolve())
    cases = [c for c in corpus(arguments.only) if arguments.slow or "slow" not in c.options]
    if arguments.compile:
        return 0 if compiles(program, cases) else 1
    start = time.monotonic()
    out = open(arguments.out, "w", encoding="utf-8") if arguments.out else None  # noqa: SIM115
    with tempfile.TemporaryDirectory(prefix="ke-hostile-") as name:
        homes = homes_in(Path(name), max(1, arguments.jobs))
        fine = judge_all(program, cases, arguments.jobs, homes, out)
        print("and afterwards:")
        for case in corpus("honest*"):
            if case.name in HONEST:
                fine = show(judge(program, case, homes), out) and fine
    for line in left_behind():
        print(f"NOT OK {line}")
        fine = False
    print(f"{len(cases)} candidates in {time.monotonic() - start:.0f} s: "
          f"{'all as they should be' if fine else 'NOT OK'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
