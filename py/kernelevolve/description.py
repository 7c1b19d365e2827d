# SPDX-License-Identifier: Apache-2.0
"""What the judge learns about a loaded problem: tensors, graph, work, and what is special."""

from __future__ import annotations

from typing import Any

import torch

from analysis import Analysis, OutputTraits, analyse
from binding import BoundModel, bind_float64, float64_default, observe_state, record_changes
from export import ExportedGraph, ExportError, export_graph
from failure import ProblemError, one_line
from memory import dense_strides
from problem import DTYPE_NAMES, LoadedProblem, output_tensors
from truth import ROUNDOFF

REAL_BYTES_MAX = 1 << 26  # larger problems are observed and tried in float64 without real data
REAL_FLOPS_MAX = 1 << 30


def _state(problem: LoadedProblem) -> list[torch.Tensor]:
    named = dict(problem.model.named_parameters()) | dict(problem.model.named_buffers())
    return [named[s.name].detach() for s in problem.inputs if s.kind != "argument"]


def describe_problem(problem: LoadedProblem) -> tuple[dict[str, Any], list[OutputTraits], bool]:
    """The description as JSON, what the outputs are like, and whether float64 works."""
    arguments, _ = problem.draw(problem.options.seed)
    tensors = arguments + _state(problem)
    exported, why = _export(problem, tensors)
    if exported is None:
        _try_forward(problem, tensors)
        analysis = Analysis(1, 0, [OutputTraits() for _ in problem.outputs], [])
    else:
        problem.mutated |= exported.mutated
        problem.outputs = [(fake.dtype, list(fake.shape)) for fake in exported.outputs]
        analysis = analyse(exported)
        if analysis.random:
            problem.flags.append("random")
        elif _is_small(tensors, analysis) or not problem.outputs:
            _try_forward(problem, tensors)  # sees attributes that export forgives
    if "random" in problem.flags:
        drawn = f" ({analysis.random[0]})" if analysis.random else ""
        raise ProblemError(
            f"{problem.options.path}: forward() draws random numbers{drawn}, which is not "
            "supported yet; draw them in get_inputs() and pass them in"
        )
    wide = _works_in_float64(problem, tensors, _is_small(tensors, analysis))
    return _encode(problem, exported, why, analysis, wide), analysis.outputs, wide


def _export(
    problem: LoadedProblem, tensors: list[torch.Tensor]
) -> tuple[ExportedGraph | None, str]:
    try:
        # A copy, because export may leave fake tensors in attributes of the module.
        bound = BoundModel(problem, tensors)
        return export_graph(problem, bound.model, bound.arguments), ""
    except ProblemError:
        raise
    except ExportError as error:
        return None, f"the graph holds {error}"
    except Exception as error:  # noqa: BLE001  forward() is tried for real next
        return None, one_line(f"{type(error).__name__}: {error}")


def _try_forward(problem: LoadedProblem, tensors: list[torch.Tensor]) -> None:
    """Runs forward() for real: its faults are the problem's; notes what it changes."""
    bound = BoundModel(problem, [t.clone() for t in tensors])
    before, random_before = observe_state(problem, bound), torch.get_rng_state()
    with problem.blame("forward()"):
        outputs = output_tensors(problem.options.path, bound())
    record_changes(problem, before, observe_state(problem, bound))
    problem.outputs = [(tensor.dtype, list(tensor.shape)) for tensor in outputs]
    if not torch.equal(random_before, torch.get_rng_state()):
        problem.flags.append("random")


def _is_small(tensors: list[torch.Tensor], analysis: Analysis) -> bool:
    size = sum(t.numel() * t.itemsize for t in tensors)
    return size <= REAL_BYTES_MAX and analysis.flops <= REAL_FLOPS_MAX


def _works_in_float64(problem: LoadedProblem, tensors: list[torch.Tensor], real: bool) -> bool:
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with float64_default():
            if real:
                bound = bind_float64(problem, tensors)
                found = output_tensors(problem.options.path, bound())
            else:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    fakes = [mode.from_tensor(t) for t in tensors]
                    bound = bind_float64(problem, fakes)
                    found = output_tensors(problem.options.path, bound())
    except Exception:  # noqa: BLE001  any failure means: not in float64
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
        "longest_reduction": analysis.longest_reduction,
        "flops": analysis.flops,
        "unit_roundoff": min((ROUNDOFF[d] for d in floats), default=2.0**-24),
        "flags": problem.flags,
        "cases": problem.case_count,
        "mutated": sorted(problem.mutated),
        "reassigned": sorted(problem.reassigned),
    }
