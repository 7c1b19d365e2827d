# SPDX-License-Identifier: Apache-2.0
"""Random draws in forward(), hoisted: observed while loading, then handed in like other inputs.

A draw is the tensor of numbers that one call fills in, and forward() makes its draws in one order.
It depends on shapes and constants alone, never on data:

- rand, randn_like, uniform_, exponential_, … draw the numbers that they return;
- dropout draws its noise by bernoulli_(p): the zeros and ones, as booleans. (Not uniform numbers:
  nobody says which ones, if any, PyTorch compares with p. The mask is the same in every precision
  and takes one byte an element.)
- bernoulli with a tensor of probabilities depends on data; its draw is the uniform numbers that are
  compared with them, as PyTorch does it on the CPU.

`Draw.make` draws from PyTorch's generator what the call itself would draw, bit for bit. This file
sees eager calls (a dispatch mode) and nodes of an exported graph alike, by the same table.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from failure import ProblemError
from memory import dense_strides, is_dense

UNIFORM, NORMAL = ("uniform_", (0.0, 1.0)), ("normal_", (0.0, 1.0))
# Operation (without the underscore of its in-place form): the method that draws, its parameters.
FIXED = {"rand": UNIFORM, "rand_like": UNIFORM, "randn": NORMAL, "randn_like": NORMAL}
# Operation: the method that draws, and which arguments are its parameters.
NAMED = {
    "bernoulli": ("bernoulli_", ("p",)),
    "cauchy": ("cauchy_", ("median", "sigma")),
    "exponential": ("exponential_", ("lambd",)),
    "geometric": ("geometric_", ("p",)),
    "log_normal": ("log_normal_", ("mean", "std")),
    "normal": ("normal_", ("mean", "std")),
    "normal_functional": ("normal_", ("mean", "std")),
    "randint": ("random_", ("low", "high")),
    "randint_like": ("random_", ("low", "high")),
    "random": ("random_", ("from", "to")),
    "uniform": ("uniform_", ("from", "to")),
}
# Other operations that draw: from data, or numbers that depend on one another.
REFUSED = frozenset(
    """
    _sample_dirichlet _standard_gamma binomial multinomial poisson randperm rrelu_with_noise
    rrelu_with_noise_functional
    """.split()
)
WHOLE_MAX = 2**53  # parameters travel as doubles
CHANGES = (
    "forward() draws other random numbers in one call than in another; make the draws depend on "
    "the input shapes alone, or draw in get_inputs() and pass them in"
)


class Unsupported(Exception):
    """An operation draws in a way that cannot be hoisted; the message names it."""


@dataclass(frozen=True)
class Fill:
    """What one call draws."""

    method: str  # of torch.Tensor: "uniform_", "bernoulli_", …
    parameters: tuple[float, ...]
    compared: bool = False  # uniform numbers, of which those below a probability give 1


@dataclass(frozen=True)
class Draw:
    fill: Fill
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def make(self, generator: torch.Generator) -> torch.Tensor:
        numbers = torch.empty_strided(
            self.shape, self.strides, dtype=self.dtype, device=generator.device
        )
        return getattr(numbers, self.fill.method)(*self.fill.parameters, generator=generator)

    def encode(self) -> dict[str, Any]:
        return {"method": self.fill.method, "parameters": list(self.fill.parameters)}


def _arguments(target: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """A call's arguments by name, with defaults."""
    found = {}
    for position, argument in enumerate(target._schema.arguments):
        if position < len(args) and not argument.kwarg_only:
            found[argument.name] = args[position]
        elif argument.name in kwargs:
            found[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            found[argument.name] = argument.default_value
    return found


def _base_name(target: Any) -> str:
    return target._schema.name.removeprefix("aten::").removesuffix("_")


def hides_draws(target: Any, args: Any, kwargs: Any) -> bool:
    """Whether a graph's node draws inside, as a recurrent layer with dropout does."""
    given = _arguments(target, args, kwargs)
    rate = given.get("dropout", given.get("dropout_p", 0.0))
    return isinstance(rate, float) and rate > 0 and given.get("train", True) is not False


def fill_of(target: Any, args: Any, kwargs: Any) -> Fill | None:
    """What the call draws; None when it draws nothing. Raises Unsupported."""
    name = _base_name(target)
    if name not in FIXED and name not in NAMED and name not in REFUSED:
        return None
    given = _arguments(target, args, kwargs)
    if name in REFUSED:
        if given.get("training", True) is False:
            return None
        raise Unsupported(f"torch.{name}")
    if given.get("generator") is not None:
        raise Unsupported(f"torch.{name} with a generator of its own")
    if "out" in given:
        raise Unsupported(f"torch.{name} with out=")
    if name in FIXED:
        return Fill(*FIXED[name])
    method, names = NAMED[name]
    if name == "bernoulli" and not isinstance(given.get("p"), (int, float)):
        return Fill(*UNIFORM, compared=True)
    parameters = [given[n] for n in names if n in given]
    if name.startswith("rand") and len(parameters) == 1:
        parameters = [0, *parameters]  # below the one bound
    if not all(isinstance(p, (int, float)) and abs(p) <= WHOLE_MAX for p in parameters):
        raise Unsupported(f"torch.{name} with parameters that are not plain numbers")
    return Fill(method, tuple(parameters))


def probabilities(target: Any, args: Any, kwargs: Any) -> Any:
    given = _arguments(target, args, kwargs)
    return given["p"] if given.get("p") is not None else given["self"]


def _draw_of(fill: Fill, target: Any, args: Any, kwargs: Any, result: torch.Tensor) -> Draw:
    """The draw behind a call's result. Raises Unsupported."""
    dtype = result.dtype
    if fill.compared:
        wide = probabilities(target, args, kwargs).dtype == torch.float64
        dtype = torch.float64 if wide else torch.float32
    elif fill.method == "bernoulli_":
        dtype = torch.bool
    elif dtype.is_complex:
        raise Unsupported(f"torch.{_base_name(target)} of complex numbers")
    shape = tuple(result.shape)
    # In the layout that forward() fills: the order in memory is the order of the generator.
    strided = is_dense(result) and not result.is_contiguous()
    return Draw(fill, dtype, shape, tuple(result.stride() if strided else dense_strides([*shape])))


def dropout_by_noise(
    x: torch.Tensor, p: float, train: bool | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Dropout as PyTorch computes it on the CPU: with noise from bernoulli."""
    if not train or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    noise = torch.ops.aten.bernoulli.p(torch.empty_like(x), 1 - p)
    return x * (noise / (1 - p)), noise.bool()


class Recorder(TorchDispatchMode):
    """Notes every draw of the calls inside."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self.draws: list[Draw] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.native_dropout.default:  # a device's, which draws inside
            with self:
                return dropout_by_noise(*args, **kwargs)
        with refusing(self.path):
            fill = fill_of(func, args, kwargs)
        result = func(*args, **kwargs)
        if fill is not None:
            with refusing(self.path):
                self.draws.append(_draw_of(fill, func, args, kwargs, result))
        return result


class Replay(TorchDispatchMode):
    """Gives the calls inside, in place of what they would draw, the numbers that were drawn."""

    def __init__(self, path: str, draws: list[Draw], numbers: list[torch.Tensor]) -> None:
        super().__init__()
        self.path = path
        self.left = list(zip(draws, numbers, strict=True))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.ops.aten.native_dropout.default:  # a device's, which draws inside
            with self:
                return dropout_by_noise(*args, **kwargs)
        with refusing(self.path):
            fill = fill_of(func, args, kwargs)
        if fill is None:
            return func(*args, **kwargs)
        result = args[0] if func._schema.name.endswith("_") else _blank(func, args, kwargs)
        if not self.left:
            raise ProblemError(f"{self.path}: {CHANGES}")
        draw, numbers = self.left.pop(0)
        if draw.fill != fill or draw.shape != tuple(result.shape):
            raise ProblemError(f"{self.path}: {CHANGES}")
        if fill.compared:
            numbers = numbers < probabilities(func, args, kwargs)
        return result.copy_(numbers)

    def finish(self) -> None:
        if self.left:
            raise ProblemError(f"{self.path}: {CHANGES}")


def _blank(target: Any, args: Any, kwargs: Any) -> torch.Tensor:
    """The tensor that a call would return, not yet filled."""
    given = _arguments(target, args, kwargs)
    # As given: the schema's default of a type is no torch.dtype.
    options = {
        key: kwargs[key]
        for key in ("dtype", "layout", "device", "pin_memory", "memory_format")
        if kwargs.get(key) is not None
    }
    if "self" in given:
        return torch.empty_like(given["self"], **options)
    if _base_name(target) == "randint":
        options.setdefault("dtype", torch.int64)
    return torch.empty(given["size"], **options)


@contextlib.contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turns Unsupported into a sentence for the problem's author."""
    try:
        yield
    except Unsupported as error:
        raise ProblemError(
            f"{path}: forward() draws random numbers by {error}, which is not supported; draw them "
            "in get_inputs() and pass them in"
        ) from error


def _generators() -> list[Any]:
    numpy = sys.modules.get("numpy")
    states: list[Any] = [torch.get_rng_state(), random.getstate()]
    if torch.cuda.is_initialized():
        states[0] = torch.cat([states[0], torch.cuda.get_rng_state()])
    return [*states, numpy.random.get_state()[2] if numpy is not None else None]


@contextlib.contextmanager
def drawing_nothing(path: str) -> Iterator[None]:
    """Raises ProblemError when something inside draws unseen, past replayed draws."""
    before = _generators()
    yield
    after = _generators()
    if not torch.equal(before[0], after[0]) or before[1:] != after[1:]:
        raise ProblemError(
            f"{path}: forward() draws random numbers where it cannot be observed; draw them in "
            "get_inputs() and pass them in"
        )
