#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Style is a test: floors, sizes, bans, dead files. Prints one line a finding, exits 1 if any.

An exempt line carries `// tidy: allow(<rule>) because ...`; there are no exemptions by file name.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE_MAX, FUNCTION_MAX, FILE_MAX, VIRTUALS_MAX = 100, 70, 600, 7
SOURCE = {".cpp", ".hpp", ".h", ".py", ".sh"}
CPP = {".cpp", ".hpp"}
# What a tool writes and a test compares is not judged by length.
GENERATED = ("tests/data/",)

# rule, pattern, where it does not hold (path prefixes), reason
BANS = [
    ("distribution", r"std::\w+_distribution", (), "differs between libraries; use base/rng"),
    ("using-namespace", r"\busing namespace (?!std::chrono_literals)", (),
     "hides where a name comes from"),
    ("shared-ptr", r"std::shared_ptr", ("src/ir/",), "every lifetime should be visible"),
    ("clock", r"(system|steady|high_resolution)_clock::now", ("src/os/",), "time is injected"),
    ("random-device", r"std::random_device|\bs?rand\(\)", ("src/os/",), "randomness is injected"),
    ("nlohmann", r"#include <nlohmann/", ("src/base/json",), "JSON goes through base/json"),
    ("print", r"std::(cout|cerr|clog)\b", ("src/cli/",), "libraries emit events, never print"),
    ("todo", r"\b(TODO|FIXME|XXX)\b", ("tools/tidy.py",), "unfinished work belongs in an issue"),
    ("assert", r"(?<![\w.])assert\(", ("tests/", "py/"), "use KE_ASSERT, which stays on"),
]


class Report:
    def __init__(self) -> None:
        self.findings: list[str] = []

    def add(self, path: Path, line: int, rule: str, text: str) -> None:
        self.findings.append(f"{path.relative_to(ROOT)}:{line}: {text} [{rule}]")


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    skipped = ("build", ".venv", ".git", ".kernelevolve")
    found = [p for p in ROOT.rglob("*") if p.is_file()]
    return [p for p in found if not p.relative_to(ROOT).parts[0].startswith(skipped)]


def allowed(line: str, rule: str) -> bool:
    return f"tidy: allow({rule}) because " in line


def read_floors() -> dict[str, set[str]]:
    floors = {}
    for line in (ROOT / "tools/floors.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, below = line.partition(":")
            floors[folder.strip()] = set(below.split())
    return floors


def check_lines(report: Report, path: Path, lines: list[str]) -> None:
    relative = str(path.relative_to(ROOT))
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX and not allowed(line, "line"):
            report.add(path, number, "line", f"{len(line)} columns, at most {LINE_MAX}")
        if line.rstrip() != line:
            report.add(path, number, "space", "space at the end of the line")
        for rule, pattern, except_under, reason in BANS:
            if relative.startswith(except_under) or relative == "tools/tidy.py":
                continue
            if re.search(pattern, line) and not allowed(line, rule):
                report.add(path, number, rule, f"{re.search(pattern, line).group(0)}: {reason}")
    if len(lines) > FILE_MAX:
        report.add(path, len(lines), "file", f"{len(lines)} lines, at most {FILE_MAX}")


def check_first_lines(report: Report, path: Path, lines: list[str]) -> None:
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        report.add(path, 1, "licence", "the SPDX line is missing")


def check_floors(report: Report, path: Path, lines: list[str], floors: dict[str, set[str]]) -> None:
    parts = path.relative_to(ROOT).parts
    if parts[0] != "src" or len(parts) < 3:
        return
    folder = parts[1]
    if folder not in floors:
        report.add(path, 1, "floor", f"the folder {folder} has no line in tools/floors.txt")
        return
    for number, line in enumerate(lines, 1):
        found = re.match(r'\s*#include "(\w+)/', line)
        if found and found.group(1) in floors and found.group(1) not in floors[folder] | {folder}:
            if not allowed(line, "floor"):
                report.add(path, number, "floor", f"{folder} may not include {found.group(1)}")


def check_functions(report: Report, path: Path, lines: list[str]) -> None:
    """A function is a column-0 line that ends in '{', up to the column-0 '}'."""
    start = None
    for number, line in enumerate(lines, 1):
        opens = line.endswith("{") and not line.startswith((" ", "}", "#", "/"))
        if opens and not re.match(r"(namespace|extern|class|struct|enum|union)\b", line):
            start = number
        elif line.startswith((")", " ")) and start is None and line.endswith(") {") and number > 1:
            # a signature broken over lines: its first line is the nearest column-0 line above
            above = number - 1
            while above > 0 and lines[above - 1].startswith(" "):
                above -= 1
            head = lines[above - 1] if above else ""
            if "(" in head and not head.startswith(("}", "#", "//")):
                start = above
        elif line.startswith("}") and start is not None:
            length = number - start + 1
            if length > FUNCTION_MAX and not allowed(lines[start - 1], "function"):
                report.add(path, start, "function", f"{length} lines, at most {FUNCTION_MAX}")
            start = None


def check_python_functions(report: Report, path: Path, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        found = re.match(r"(\s*)(async )?def (\w+)", line)
        if not found:
            continue
        indent = len(found.group(1))
        last = number
        for below in range(number, len(lines)):
            text = lines[below]
            depth = len(text) - len(text.lstrip())
            if text.strip() and depth <= indent and not text.lstrip().startswith(")"):
                break
            if text.strip():
                last = below + 1
        if last - number + 1 > FUNCTION_MAX and not allowed(line, "function"):
            length = last - number + 1
            report.add(path, number, "function", f"{length} lines, at most {FUNCTION_MAX}")


def check_virtuals(report: Report, path: Path, lines: list[str]) -> None:
    name, count, start = "", 0, 0
    for number, line in enumerate(lines, 1):
        found = re.match(r"(class|struct) (\w+)", line)
        if found:
            name, count, start = found.group(2), 0, number
        if re.match(r"\s+virtual ", line) and "~" not in line:
            count += 1
            if count == VIRTUALS_MAX + 1:
                report.add(path, start, "virtuals", f"{name} has more than {VIRTUALS_MAX} virtuals")


def check_targets_named(report: Report, path: Path, lines: list[str], targets: list[str]) -> None:
    """No folder but its own, the tests and the docs names a target."""
    relative = str(path.relative_to(ROOT))
    if not relative.startswith("src/") or relative.endswith("_test.cpp"):
        return
    for target in targets:
        if relative.startswith(f"src/target/{target}/"):
            continue
        pattern = re.compile(rf'target/{target}\b|target_{target}\b|"{target}"')
        for number, line in enumerate(lines, 1):
            if pattern.search(line.split("//")[0]) and not allowed(line, "target"):
                report.add(path, number, "target", f"names the target {target} outside its folder")


def check_dead_files(report: Report, files: list[Path]) -> None:
    """Every .cpp is listed in a CMakeLists above it, or lies in a folder that one globs."""
    for path in files:
        if path.suffix != ".cpp" or path.relative_to(ROOT).parts[0] not in ("src", "bench"):
            continue
        if any(allowed(line, "dead") for line in path.read_text().splitlines()[:3]):
            continue
        folder, listed = path.parent, False
        while folder != ROOT and not listed:
            cmake = folder / "CMakeLists.txt"
            if cmake.exists():
                text = cmake.read_text()
                relative = str(path.relative_to(folder))
                globs = re.findall(r"GLOB \w+ CONFIGURE_DEPENDS ([^)]*)\)", text)
                patterns = [re.sub(r"\$\{\w+\}", "*", g) for group in globs for g in group.split()]
                globbed = any(path.match(pattern) for pattern in patterns)
                listed = globbed or re.search(rf"(?<![\w/]){re.escape(relative)}", text) is not None
                listed = listed or path.stem in re.findall(r"[\w/]+", text)
            folder = folder.parent
        if not listed:
            report.add(path, 1, "dead", "no CMakeLists.txt above it names this file")


def check_readmes(report: Report, files: list[Path]) -> None:
    folders = {p.parent for p in files if p.relative_to(ROOT).parts[0] == "src" and p.suffix in CPP}
    for folder in sorted(folders):
        parts = folder.relative_to(ROOT).parts
        if len(parts) == 2 and not (folder / "README.md").exists():
            report.add(folder, 1, "readme", "the folder has no README.md")


def main() -> int:
    report = Report()
    floors = read_floors()
    files = tracked_files()
    target_root = ROOT / "src/target"
    targets = sorted(p.parent.name for p in target_root.glob("*/target.cpp"))
    for path in files:
        if path.suffix not in SOURCE or str(path.relative_to(ROOT)).startswith(GENERATED):
            continue
        lines = path.read_text(errors="replace").splitlines()
        check_lines(report, path, lines)
        check_first_lines(report, path, lines)
        if path.suffix in CPP:
            check_floors(report, path, lines, floors)
            check_functions(report, path, lines)
            check_virtuals(report, path, lines)
            check_targets_named(report, path, lines, targets)
        if path.suffix == ".py":
            check_python_functions(report, path, lines)
    check_dead_files(report, files)
    check_readmes(report, files)
    for finding in sorted(report.findings):
        print(finding)
    print(f"tidy: {len(report.findings)} findings in {len(files)} files", file=sys.stderr)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
