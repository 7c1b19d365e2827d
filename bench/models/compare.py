# SPDX-License-Identifier: Apache-2.0
"""The best kernel of recorded runs with a language model, against the synthesizer alone.

For every recording: the synthesizer gets as many steps as the recorded run had, with the same
seed; then the best kernel of both sides is confirmed by `kernelevolve bench`, one after the other,
so that both figures are against the baselines in the same minutes. Writes one JSON object a
problem.

    python3 bench/models/compare.py build/kernelevolve OUT.jsonl RECORDING.json...
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def best_node(recording: dict) -> dict | None:
    """The accepted node with the best confirmed figure, or without any the best figure."""

    def rank(node: dict) -> tuple[bool, float]:
        figures = [(e["confirmed"], e["measurement"]["speedup"]) for e in accepted(node)]
        return max(figures)

    def accepted(node: dict) -> list[dict]:
        found = [one["evaluation"] for one in node["evaluations"]]
        return [e for e in found if e["verdict"] == "accepted" and e["measurement"]]

    candidates = [node for node in recording["nodes"] if accepted(node)]
    return max(candidates, key=rank, default=None)


def run(binary: str, *arguments: object, cwd: Path) -> dict:
    ran = subprocess.run(
        [binary, *map(str, arguments), "--json"], cwd=cwd, capture_output=True, text=True
    )
    if ran.returncode == 2:
        sys.exit(f"{arguments[0]}: {ran.stderr[-500:]}")
    return json.loads(ran.stdout)


def figures(binary: str, problem: Path, kernel: Path) -> dict:
    """Against the better baseline: speed-up and its 95 % interval, and the cold median."""
    report = run(binary, "bench", problem.name, kernel, cwd=problem.parent)
    measured = report["evaluation"]["measurement"]
    return {
        "verdict": report["verdict"],
        "flags": report["flags"],
        "time_ns": report["time_ns"],
        "baseline_ns": report["baseline_ns"],
        "speedup": measured and measured["speedup"],
        "low": measured and measured["speedup_low"],
        "high": measured and measured["speedup_high"],
    }


def compare(binary: str, path: Path) -> dict:
    recording = json.loads(path.read_text())
    steps = len(recording["nodes"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problem = folder / recording["description"]["file"]
        problem.write_text(recording["description"]["source"])
        row: dict = {"problem": problem.stem, "steps": steps, "model": None, "synth": None}
        synth = run(
            binary, "optimize", problem.name, "--steps", steps, "--seed", recording["seed"],
            "--proposers", "synth,tune", cwd=folder,
        )  # fmt: skip
        if synth["kernel_path"]:
            row["synth"] = figures(binary, problem, folder / synth["kernel_path"])
        if node := best_node(recording):
            kernel = folder / "model.cpp"
            kernel.write_text(node["source"])
            row["model"] = figures(binary, problem, kernel) | {"node": node["node"]}
    return row


def shown(side: dict | None) -> str:
    if not side or not side["speedup"]:
        return "none"
    return f"{side['speedup']:.2f}x [{side['low']:.2f}, {side['high']:.2f}]"


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    binary = str(Path(sys.argv[1]).resolve())
    with open(sys.argv[2], "a", encoding="utf-8") as out:
        for argument in sys.argv[3:]:
            row = compare(binary, Path(argument))
            print(json.dumps(row), file=out, flush=True)
            sides = f"synth {shown(row['synth'])}   model {shown(row['model'])}"
            print(f"{row['problem']:<20} {row['steps']:>3} steps  {sides}", flush=True)


if __name__ == "__main__":
    main()
