# SPDX-License-Identifier: Apache-2.0
"""What the library makes of a problem, as sources that a search can begin with.

The forms are the model as it is written and the kernels that torch.compile generated for it, called
plainly or, where little has to be copied for it, replayed from a captured graph. Each is a Python
module with ModelNew under the contract of model_runner.py, made of the problem's own text.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree

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
    small = _moved_bytes(problem) <= GRAPH_BYTES_MAX and problem.options.place().type == "cuda"
    wanted = []
    if compiled is not None:
        wanted.append(("torch.compile", compiled, small))
    if small:
        wanted.append(("eager", None, True))
    if compiled is None:
        wanted.append(("eager", None, False))
    return [
        {
            "name": f"{origin}, replayed" if replayed else origin,
            "source": _module(problem, text, origin, found, replayed, len(draws)),
        }
        for origin, found, replayed in wanted
    ]


def _moved_bytes(problem: LoadedProblem) -> int:
    tensors = [(s.dtype, s.shape) for s in problem.inputs if s.kind == "argument"]
    return sum(
        torch.Size(shape).numel() * dtype.itemsize for dtype, shape in tensors + problem.outputs
    )


def _module(
    problem: LoadedProblem,
    text: str,
    origin: str,
    compiled: Compiled | None,
    replayed: bool,
    drawn: int,
) -> str:
    how = ", replayed from a captured graph" if replayed else ""
    parts = [f"# ke:origin {origin}\n# {ORIGINS[origin]}{how}.\n", text.rstrip(), "\n\n"]
    if compiled is not None:
        parts += [COMPILER_SETTINGS, compiled.code.rstrip(), "\n\n"]
    parts += [MODULE_HEAD, RESTORING.format(names=sorted(problem.reassigned))]
    if compiled is None and drawn:
        parts += [DRAWING_MODEL.format(drawn=drawn)]
    elif compiled is None:
        parts.append(CALLING_MODEL)
    else:
        count = len(problem.outputs)
        result = "results[0]" if count == 1 else f"tuple(results[:{count}])"
        parts.append(
            CALLING_KERNELS.format(arguments=", ".join(compiled.arguments), result=result)
        )
    parts += [FORWARD_REPLAYED, REPLAY] if replayed else [FORWARD]
    if drawn:
        parts.append(GIVEN_DRAWS)
    return "".join(parts)


# Before the generated code: it compiles its kernels in this process, in a folder of its own.
COMPILER_SETTINGS = '''
import os as _os
import tempfile as _tempfile

_os.environ["TORCHINDUCTOR_CACHE_DIR"] = _tempfile.mkdtemp()
import torch._inductor.config

torch._inductor.config.compile_threads = 1

'''

MODULE_HEAD = '''
import torch
from torch.utils import _pytree


def tensors_of(arguments):
    return [x for x in _pytree.tree_flatten(arguments)[0] if isinstance(x, torch.Tensor)]


def same_bytes(a, b):
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


class ModelNew(Model):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.places, self.graphs = [], {}
        for module in self.modules():
            if isinstance(module, torch.nn.RNNBase):  # it would copy its weights, once
                module.flatten_parameters = lambda: None
        for kind in ("_parameters", "_buffers"):
            seen = set()
            for module in self.modules():
                held = getattr(module, kind)
                for name, tensor in held.items():
                    if tensor is not None and id(tensor) not in seen:
                        seen.add(id(tensor))
                        self.places.append((held, name))
'''

# Attributes that forward() replaces are the same before every call.
RESTORING = '''        self.replaced = [
            (module, name, getattr(module, name))
            for module in self.modules()
            for name in {names}
            if hasattr(module, name)
        ]

    def restore(self):
        for module, name, value in self.replaced:
            setattr(module, name, value)
'''

CALLING_MODEL = '''
    def compute(self, arguments):
        return super().forward(*arguments)
'''

DRAWING_MODEL = '''
    def compute(self, arguments):
        with GivenDraws(arguments[-{drawn}:]):
            return super().forward(*arguments[:-{drawn}])
'''

# Behind ModelNew. Dropout as draws.py records it: by its noise.
GIVEN_DRAWS = '''

from torch.utils._python_dispatch import TorchDispatchMode


class GivenDraws(TorchDispatchMode):
    """Where the model draws random numbers, it gets those that were handed in, in their order."""

    def __init__(self, numbers):
        super().__init__()
        self.left = list(numbers)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name in ("rand", "randn", "rand_like", "randn_like"):
            return self.left.pop(0).clone()
        if name in ("uniform_", "normal_", "bernoulli_"):
            return args[0].copy_(self.left.pop(0))
        if name == "native_dropout":
            x, rate, train = args
            if not train or rate in (0, 1):
                return (x * (1 - rate if train else 1)), torch.ones_like(x, dtype=torch.bool)
            noise = self.left.pop(0)
            return x * (noise / (1 - rate)), noise
        return func(*args, **kwargs)
'''

CALLING_KERNELS = '''
    def compute(self, arguments):
        given = tensors_of(arguments)
        state = [held[name] for held, name in self.places]
        results = call([{arguments}])
        return {result}
'''

FORWARD = '''
    def forward(self, *arguments):
        self.restore()
        return self.compute(arguments)
'''

FORWARD_REPLAYED = '''
    def forward(self, *arguments):
        given = tensors_of(arguments)
        if not given or not given[0].is_cuda or torch.cuda.is_current_stream_capturing():
            self.restore()
            return self.compute(arguments)
        return self.replay(arguments, given)
'''

REPLAY = '''
    def replay(self, arguments, given):
        """The same by a captured graph, on copies of the arguments."""
        key = tuple((t.shape, t.stride(), t.dtype) for t in given)
        key += tuple(held[name].data_ptr() for held, name in self.places)
        if key not in self.graphs:
            self.graphs[key] = self.capture(arguments)
        graph, own, results = self.graphs[key]
        for mine, tensor in zip(own, given):
            mine.copy_(tensor)
        graph.replay()
        return _pytree.tree_map(torch.clone, results)

    def capture(self, arguments):
        leaves, tree = _pytree.tree_flatten(arguments)
        leaves = [x.clone() if isinstance(x, torch.Tensor) else x for x in leaves]
        own = _pytree.tree_unflatten(leaves, tree)
        before = [(t, t.clone()) for t in self.buffers()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.restore()
            self.compute(own)  # what happens at first calls only must not be captured
            for tensor, value in before:
                if not same_bytes(tensor, value):
                    tensor.copy_(value)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.restore()
        with torch.cuda.graph(graph):
            results = self.compute(own)
        return graph, tensors_of(own), results
'''
