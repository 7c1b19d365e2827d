# SPDX-License-Identifier: Apache-2.0
"""What the library makes of a problem, as sources that a search can begin with.

The forms are the model as it is written and the kernels that torch.compile generated for it, called
plainly or, where little has to be copied for it, replayed from a captured graph; convolutions also
in the memory format that has channels last. Each is a Python module with ModelNew under the
contract of model_runner.py, made of the problem's own text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree

import form_text
from binding import BoundModel
from problem import LoadedProblem

GRAPH_BYTES_MAX = 64 << 20  # of arguments and results, which a replay copies
GIVEN_BY = frozenset({"uniform_", "normal_", "bernoulli_"})  # draws that GivenDraws hands over
ORIGINS = {"eager": "the model as it is written", "torch.compile": "torch.compile's kernels"}


@dataclass
class Compiled:
    """The generated module's text and how to call it."""

    code: str
    arguments: list[str]  # expressions, in the order of its list


@dataclass
class Recorder:
    """Stands in for torch.compile's backend and notes what it generates."""

    codes: list[str] = field(default_factory=list)
    examples: list[list[Any]] = field(default_factory=list)  # of each graph's arguments

    def backend(self, graph: Any, inputs: list[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self.examples.append([_example(node) for node in nodes])
        with self._recording():
            return compile_fx(graph, inputs)

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        """Code that comes from a cache is not seen, so that there is none."""
        import torch._functorch.config
        import torch._inductor.config
        from torch._inductor.graph import GraphLowering

        before = getattr(GraphLowering, "save_output_code", None)  # a hook, usually absent
        GraphLowering.save_output_code = staticmethod(self.codes.append)
        try:
            with (
                torch._inductor.config.patch(fx_graph_cache=False),
                torch._functorch.config.patch(enable_autograd_cache=False),
            ):
                yield
        finally:
            GraphLowering.save_output_code = before

    def take(self, bound: BoundModel) -> Compiled | None:
        """If the whole model became one graph whose arguments are all known. Forgets the rest."""
        codes, examples = self.codes[:], self.examples[:]
        self.codes.clear()
        self.examples.clear()
        if len(codes) != 1 or len(examples) != 1:
            return None
        leaves, _ = _pytree.tree_flatten(bound.arguments)
        given = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        known = {_place(tensor): f"given[{i}]" for i, tensor in enumerate(given)}
        named = [*bound.model.named_parameters(), *bound.model.named_buffers()]
        known.update({_place(tensor): f"state[{i}]" for i, (_, tensor) in enumerate(named)})
        arguments = []
        for example in examples[0]:
            if not isinstance(example, torch.Tensor) or _place(example) not in known:
                return None
            arguments.append(known[_place(example)])
        code = codes[0].split("\ndef get_args():")[0]
        code = code.split("\ndef benchmark_compiled_module")[0].split("\nif __name__ ==")[0]
        return Compiled(code, arguments) if "\ncall = " in code or "\ndef call(" in code else None


def described(result: Any) -> list[tuple[torch.dtype, list[int]]]:
    """Types and shapes of what a call returned."""
    leaves, _ = _pytree.tree_flatten(result)
    return [(t.dtype, list(t.shape)) for t in leaves if isinstance(t, torch.Tensor)]


def _example(node: Any) -> Any:
    try:
        return node.meta["grapharg"].example
    except Exception:  # noqa: BLE001  torch's own; without it there is no such form
        return None


def _place(tensor: torch.Tensor) -> tuple[int, tuple[int, ...]]:
    return tensor.data_ptr(), tuple(tensor.shape)


@dataclass(frozen=True)
class Form:
    origin: str  # of ORIGINS
    compiled: Compiled | None = None  # none: the model itself is called
    replayed: bool = False  # from a captured graph
    channels_last: bool = False  # convolutions and what they read, converted in each call

    def name(self) -> str:
        manner = [", channels last"] * self.channels_last + [", replayed"] * self.replayed
        return self.origin + "".join(manner)


def library_forms(
    problem: LoadedProblem, text: str, compiled: Compiled | None, draws: Sequence[str] = ()
) -> list[dict[str, str]]:
    """{"name", "source"} of each, those first that promise most.

    `draws`: by which method each random draw of forward() is made (draws.py); the numbers follow
    the arguments, and torch.compile's kernels, which draw their own, are of no use then.
    """
    if set(draws) - GIVEN_BY:
        return []
    assert compiled is None or not draws
    on_device = problem.options.place().type == "cuda"
    small = on_device and _moved_bytes(problem) <= GRAPH_BYTES_MAX
    wanted = []
    if compiled is not None:
        wanted.append(Form("torch.compile", compiled, small))
    if _convolves(problem):
        wanted.append(Form("eager", None, small, channels_last=True))
    if small:
        wanted.append(Form("eager", None, True))
    if compiled is None:
        wanted.append(Form("eager"))
    return [
        {"name": form.name(), "source": _module(problem, text, form, len(draws))}
        for form in wanted
    ]


def _moved_bytes(problem: LoadedProblem) -> int:
    tensors = [(s.dtype, s.shape) for s in problem.inputs if s.kind == "argument"]
    return sum(
        torch.Size(shape).numel() * dtype.itemsize for dtype, shape in tensors + problem.outputs
    )


def _convolves(problem: LoadedProblem) -> bool:
    """Whether there is a layer whose memory format can be chosen."""
    nn = torch.nn
    kinds = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    return any(isinstance(module, kinds) for module in problem.model.modules())


def _module(problem: LoadedProblem, text: str, form: Form, drawn: int) -> str:
    parts = [f"# ke:origin {form.origin}\n# {ORIGINS[form.origin]}: {form.name()}.\n"]
    parts += [text.rstrip(), "\n\n"]
    if form.compiled is not None:
        parts += [form_text.COMPILER_SETTINGS, form.compiled.code.rstrip(), "\n\n"]
    parts.append(form_text.MODULE_HEAD)
    parts.append(form_text.RESTORING.format(names=sorted(problem.reassigned)))
    if form.compiled is not None:
        count = len(problem.outputs)
        result = "results[0]" if count == 1 else f"tuple(results[:{count}])"
        parts.append(
            form_text.CALLING_KERNELS.format(
                arguments=", ".join(form.compiled.arguments), result=result
            )
        )
    elif drawn:
        parts.append(form_text.CALLING_DRAWING_MODEL.format(drawn=drawn))
    else:
        parts.append(form_text.CALLING_MODEL)
    parts.append(form_text.CHANNELS_LAST if form.channels_last else form_text.AS_IT_LIES)
    if form.replayed:
        parts += [form_text.FORWARD_REPLAYED, form_text.REPLAY]
    else:
        parts.append(form_text.FORWARD)
    if drawn:
        parts.append(form_text.GIVEN_DRAWS)
    return "".join(parts)
