# SPDX-License-Identifier: Apache-2.0
"""What the judge learns about a loaded problem: tensors, graph, work, and what is special."""

from __future__ import annotations

from typing import Any

import torch

from analysis import Analysis, OutputTraits, analyse
from binding import (
    BoundModel,
    bind_float64,
    bind_on_processor,
    float64_default,
    observe_state,
    record_changes,
)
from draws import CHANGES, Draw, Recorder, drawing_nothing, refusing
from export import KEPT_WHOLE, ExportedGraph, ExportError, draws_numbers, trace, write_graph
from failure import ProblemError, device_full, fills_device, one_line
from memory import dense_strides
from problem import DTYPE_NAMES, LoadedProblem, numbered, output_tensors
from truth import ROUNDOFF

REAL_BYTES_MAX = 1 << 26  # larger problems are observed and tried in float64 without real data
REAL_FLOPS_MAX = 1 << 30


def describe_problem(problem: LoadedProblem) -> tuple[dict[str, Any], list[OutputTraits], bool]:
    """The description as JSON, what the outputs are like, and whether float64 works."""
    arguments, _ = problem.draw(problem.options.seed)
    tensors = arguments + problem.state()
    exported, why = _export(problem, tensors)
    tensors += problem.make_draws(numbered(problem.options.seed, 0, "draws"))
    if exported is None:
        _try_forward(problem, tensors)
        analysis = Analysis(1, 0, [OutputTraits() for _ in problem.outputs])
    else:
        problem.mutated |= exported.mutated
        problem.outputs = [(fake.dtype, list(fake.shape)) for fake in exported.outputs]
        analysis = analyse(exported)
        if _is_small(tensors, analysis) or not problem.outputs or _is_recurrent(exported):
            _try_forward(problem, tensors)  # sees attributes that export forgives
        fakes = [(fake.dtype, list(fake.shape)) for fake in exported.outputs]
        if fakes != problem.outputs:
            exported, why = None, "the exported graph has results of other shapes than forward()"
    wide = _works_in_float64(problem, tensors, _is_small(tensors, analysis))
    return _encode(problem, exported, why, analysis, wide), analysis.outputs, wide


def _export(
    problem: LoadedProblem, tensors: list[torch.Tensor]
) -> tuple[ExportedGraph | None, str]:
    """The graph, or None and why there is none. Also finds out what forward() draws."""
    program, why = None, ""
    try:
        # A copy, because export may leave fake tensors in attributes of the module.
        on_device = bool(problem.options.device)
        bound = bind_on_processor(problem) if on_device else BoundModel(problem, tensors)
        program = trace(bound.model, bound.arguments)
    except ProblemError:
        raise
    except Exception as error:  # noqa: BLE001  forward() is tried for real next
        why = one_line(f"{type(error).__name__}: {error}")
    if program is None:
        problem.hoist(_observe(problem, tensors))
        return None, why
    with refusing(problem.options.path):
        drawing = draws_numbers(program)
    if drawing:
        problem.hoist(_observe_shapes(problem, tensors))
    try:
        return write_graph(problem, program), ""
    except ExportError as error:
        return None, f"the graph holds {error}"
    except Exception as error:  # noqa: BLE001  an odd program costs the graph alone
        return None, one_line(f"{type(error).__name__}: {error}")


def _bind_fakes(problem: LoadedProblem, tensors: list[torch.Tensor], mode: Any) -> BoundModel:
    if problem.options.device:
        return bind_on_processor(problem, mode)
    return BoundModel(problem, [mode.from_tensor(t) for t in tensors])


def _observe_shapes(problem: LoadedProblem, tensors: list[torch.Tensor]) -> list[Draw]:
    """What forward() draws, without computing: what can be exported decides nothing by data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            bound = _bind_fakes(problem, tensors, mode)
            with Recorder(problem.options.path) as recorder:
                bound()
    except ProblemError:
        raise
    except Exception:  # noqa: BLE001  an operation that knows no fakes
        return _observe(problem, tensors)
    return recorder.draws


def _observe(problem: LoadedProblem, tensors: list[torch.Tensor]) -> list[Draw]:
    """What forward() draws in a real call; when it does, a second call must draw the same."""
    found: list[list[Draw]] = []
    while not found or (found[0] and len(found) < 2):
        bound = BoundModel(problem, [t.clone() for t in tensors])
        with problem.blame("forward()"), Recorder(problem.options.path) as recorder:
            bound()
        found.append(recorder.draws)
    if found[0] != found[-1]:
        raise ProblemError(f"{problem.options.path}: {CHANGES}")
    return found[0]


def _try_forward(problem: LoadedProblem, tensors: list[torch.Tensor]) -> None:
    """Runs forward() for real: its faults are the problem's; notes what it changes."""
    bound = BoundModel(problem, [t.clone() for t in tensors])
    before = observe_state(problem, bound)
    with problem.blame("forward()"), drawing_nothing(problem.options.path):
        outputs = output_tensors(problem.options, bound())
    record_changes(problem, before, observe_state(problem, bound))
    problem.outputs = [(tensor.dtype, list(tensor.shape)) for tensor in outputs]


def _is_recurrent(exported: ExportedGraph) -> bool:
    """Of whose results PyTorch 2.11 does not know the shape without computing them."""
    names = (str(node.target) for node in exported.program.graph.nodes)
    return any(name.split(".")[1:2] in ([kept] for kept in KEPT_WHOLE) for name in names)


def _is_small(tensors: list[torch.Tensor], analysis: Analysis) -> bool:
    size = sum(t.numel() * t.itemsize for t in tensors)
    return size <= REAL_BYTES_MAX and analysis.flops <= REAL_FLOPS_MAX


def _works_in_float64(problem: LoadedProblem, tensors: list[torch.Tensor], real: bool) -> bool:
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with float64_default():
            if real:
                bound = bind_float64(problem, tensors)
                found = output_tensors(problem.options, bound())
            else:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    fakes = [mode.from_tensor(t) for t in tensors]
                    bound = bind_float64(problem, fakes)
                    found = output_tensors(problem.options, bound())
    except Exception as error:  # noqa: BLE001  any failure means: not in float64
        if fills_device(error):
            raise device_full(problem.options.path, "forward() in float64", error) from error
        return False
    return [list(t.shape) for t in found] == [shape for _, shape in problem.outputs]


def _encode(
    problem: LoadedProblem, exported: ExportedGraph | None, why: str, analysis: Analysis, wide: bool
) -> dict[str, Any]:
    floats = [s.dtype for s in problem.inputs if s.dtype.is_floating_point]
    floats += [dtype for dtype, _ in problem.outputs if dtype.is_floating_point]
    outputs = [
        {
            "name": f"output{i}",
            "dtype": DTYPE_NAMES[dtype],
            "shape": shape,
            "strides": dense_strides(shape),
            "kind": "argument",
        }
        for i, (dtype, shape) in enumerate(problem.outputs)
    ]
    return {
        "inputs": [spec.encode() for spec in problem.inputs],
        "outputs": outputs,
        "graph": exported.json if exported else None,
        "graph_error": why,
        "float64_truth": wide,
        "libraries": problem.sidecar.libraries,
        "determinism": problem.sidecar.determinism,
        "longest_reduction": analysis.longest_reduction,
        "flops": analysis.flops,
        "unit_roundoff": min((ROUNDOFF[d] for d in floats), default=2.0**-24),
        "flags": problem.flags,
        "draws": [draw.encode() for draw in problem.draws],
        "cases": problem.case_count,
        "mutated": sorted(problem.mutated),
        "reassigned": sorted(problem.reassigned),
    }
