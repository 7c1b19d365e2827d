# SPDX-License-Identifier: Apache-2.0
"""Tries an exported module against the original: results first, then time. Run it where it lies.

python check.py            compares and times; exit code 1 when the results differ
python check.py --record   first notes in manifest.json how forward() is called and what it
                           returns (the exporter does this once)
"""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree

FOLDER = Path(__file__).resolve().parent
CONSTANTS = (bool, int, float, str, type(None))
SEED = 20
# What is allowed to differ, of the results' root mean square: products of 32-bit numbers on a
# device may round operands to ten bits (TF32 in convolutions) on both sides.
LIMIT, LIMIT_ON_DEVICE, LIMIT_OF_NARROW = 1e-3, 1e-2, 5e-2


def load(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def place_of(manifest: dict[str, Any]) -> torch.device:
    """Where both are tried: the proved kind of device, if there is one here."""
    kind = manifest.get("device", {}).get("type", "cpu")
    there = kind != "cuda" or torch.cuda.is_available()
    return torch.device(kind if there else "cpu")


def placed(value: Any, where: torch.device) -> Any:
    return _pytree.tree_map(lambda x: x.to(where) if isinstance(x, torch.Tensor) else x, value)


def arrangement(value: Any, counter: list[int]) -> Any:
    """How arguments lie in lists, tuples and dictionaries, tensors numbered in pytree order."""
    if isinstance(value, torch.Tensor):
        counter[0] += 1
        return ["tensor", counter[0] - 1]
    if type(value) in (list, tuple):
        return [type(value).__name__, [arrangement(part, counter) for part in value]]
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return ["dict", [[key, arrangement(part, counter)] for key, part in value.items()]]
    return ["constant", value]


def structure(value: Any, counter: list[int]) -> Any:
    """The shape of a result as JSON, tensors numbered in pytree order."""
    if isinstance(value, torch.Tensor):
        counter[0] += 1
        return ["tensor", counter[0] - 1]
    if value is None:
        return ["none", None]
    if type(value) in (list, tuple):
        return [type(value).__name__, [structure(part, counter) for part in value]]
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return ["dict", [[key, structure(part, counter)] for key, part in value.items()]]
    raise SystemExit(
        f"forward() returns {type(value).__name__}, which cannot be exported; "
        "return tensors, tuples, lists or dicts of them"
    )


def state_of(model: torch.nn.Module) -> list[Any]:
    attributes = [
        (k, v)
        for part in model.modules()
        for k, v in vars(part).items()
        if isinstance(v, (torch.Tensor, *CONSTANTS))
    ]
    return [*model.named_parameters(), *model.named_buffers(), *attributes]


def unchanged(before: list[Any], after: list[Any]) -> bool:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            return torch.equal(a, b) or bool(
                (a.isnan() == b.isnan()).all() and torch.equal(a.nan_to_num(), b.nan_to_num())
            )
        return type(a) is type(b) and bool(a == b or (a != a and b != b))

    return len(before) == len(after) and all(
        n == m and same(a, b) for (n, a), (m, b) in zip(before, after, strict=True)
    )


def record(manifest: dict[str, Any]) -> None:
    original = load(FOLDER / manifest["original"], "original_for_record")
    where = place_of(manifest)
    torch.manual_seed(SEED)
    with torch.device(where):
        model = original.Model(*original.get_init_inputs()).to(where)
        arguments = placed(list(original.get_inputs()), where)
    leaves, _ = _pytree.tree_flatten(arguments)
    noted, count = [], 0
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            noted.append(["tensor", count])
            count += 1
        elif isinstance(leaf, CONSTANTS):
            noted.append(["constant", leaf])
        else:
            raise SystemExit(
                f"get_inputs() returns {type(leaf).__name__}, which cannot be "
                "exported; use tensors, numbers, strings and None"
            )
    state_before = copy.deepcopy(state_of(model))
    arguments_before = copy.deepcopy([x for x in leaves if isinstance(x, torch.Tensor)])
    with torch.no_grad():
        result = model(*arguments)
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    kept = unchanged(state_before, state_of(model)) and unchanged(
        [("", x) for x in arguments_before], [("", x) for x in tensors]
    )
    manifest["call"] = {
        "leaves": noted,
        "arguments": arrangement(arguments, [0]),
        "flat": len(arguments) == len(leaves),
        "result": structure(result, [0]),
        "changes_state": not kept,
    }
    (FOLDER / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def seconds(call: Any, repeats: int, where: torch.device) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        if where.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def largest_error(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest difference relative to the root mean square of what is expected."""
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return float("inf")
    if expected.numel() == 0:
        return 0.0
    if not expected.is_floating_point():
        return 0.0 if torch.equal(result, expected) else float("inf")
    a, b = result.double(), expected.double()
    finite = b.isfinite()
    if not torch.equal(finite, a.isfinite()):
        return float("inf")
    if not finite.any():
        return 0.0
    scale = b[finite].square().mean().sqrt().clamp_min(1e-30)
    return float((a - b)[finite].abs().max() / scale)


def draw_cases(original: Any, where: torch.device) -> list[Any]:
    """The arguments of every shape case: get_inputs(), then get_input_cases()."""
    with torch.device(where):
        drawn = [original.get_inputs(), *getattr(original, "get_input_cases", list)()]
    return [placed(list(arguments), where) for arguments in drawn]


def limit_of(results: list[torch.Tensor], where: torch.device) -> float:
    floating = [x.dtype for x in results if x.is_floating_point()]
    if not all(dtype in (torch.float32, torch.float64) for dtype in floating):
        return LIMIT_OF_NARROW
    return LIMIT if where.type == "cpu" else LIMIT_ON_DEVICE


def main() -> int:
    manifest = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    if "--record" in sys.argv[1:]:
        record(manifest)
    exported = load(FOLDER / manifest["module"], "exported_for_check")
    torch.manual_seed(SEED)
    where = place_of(manifest)
    with torch.device(where):
        init = exported.get_init_inputs()
        old, new = exported.Model(*init).to(where), exported.ModelNew(*init).to(where)
    new.load_state_dict(old.state_dict())
    worst = 0.0
    with torch.no_grad():
        original = exported.original
        twice = [*draw_cases(original, where), *draw_cases(original, where)]
        for seed, arguments in enumerate(twice):
            torch.manual_seed(seed)  # what forward() draws is the same in both
            expected, _ = _pytree.tree_flatten(old(*arguments))
            torch.manual_seed(seed)
            results, _ = _pytree.tree_flatten(new(*arguments))
            if len(expected) != len(results):
                print("DIFFERENT: another number of results")
                return 1
            worst = max([worst, *map(largest_error, results, expected)])
    limit = limit_of(expected, where)
    if new._ke_warned:  # the reason has been printed as a warning
        print("the original runs instead of the kernel")
        return 0
    if not worst <= limit:
        print(f"DIFFERENT: largest error {worst:.3g} of the results' root mean square")
        return 1
    with torch.no_grad():
        arguments = draw_cases(original, where)[0]
        once = seconds(lambda: old(*arguments), 1, where)
        repeats = max(3, min(101, int(0.5 / max(once, 1e-6))))
        before = seconds(lambda: old(*arguments), repeats, where)
        after = seconds(lambda: new(*arguments), repeats, where)
    print(
        f"same results (largest error {worst:.3g}); original {before * 1e6:.1f} us, "
        f"kernel {after * 1e6:.1f} us, called from Python on one input"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
