# SPDX-License-Identifier: Apache-2.0
"""Loads a problem file in KernelBench's format and describes its tensors.

The file is executed in a module of its own. Model, get_inputs and get_init_inputs are required,
get_input_cases adds shape cases (cases.py); a sidecar <name>.toml may hold atol, rtol,
precision, libraries and determinism.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree

from cases import case_source, draw_case, list_cases, pick_case
from device_calls import enter, set_precision
from draws import Draw
from failure import ProblemError, blame_problem
from memory import dense_strides, is_dense

DTYPE_NAMES: dict[torch.dtype, str] = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "boolean",
}
NARROW = {"fp16": torch.float16, "bf16": torch.bfloat16}  # Options.dtype, besides "as-is"
PRECISIONS = ("strict", "ieee", "tf32", "kernelbench")
DETERMINISMS = ("bitwise", "budget")
Report = Callable[[str], None]  # told the stage that starts, for blame after a crash


@dataclass
class Options:
    """What the judge asks for, once per process."""

    path: str
    dtype: str = "as-is"
    precision: str = "strict"
    seed: int = 0
    threads: int = 1
    cache_dir: str = ""
    memory_bytes: int = 0
    interpreter: str = sys.executable
    case: int = 0  # which arguments this process draws: cases.py
    device: str = ""  # where everything is computed, as PyTorch names it; empty: the processor
    driver: str = ""  # the library of the device's driver

    def place(self) -> torch.device:
        return torch.device(self.device or "cpu")

    def making(self) -> contextlib.AbstractContextManager[Any]:
        """What the problem's file makes inside lies on the device, unless it says otherwise."""
        return self.place() if self.device else contextlib.nullcontext()


@dataclass
class Spec:
    """One input tensor of the kernel contract."""

    name: str
    kind: str  # argument, parameter, buffer, random
    dtype: torch.dtype
    shape: list[int]
    strides: list[int]

    def is_state(self) -> bool:
        return self.kind in ("parameter", "buffer")

    def encode(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "dtype": DTYPE_NAMES[self.dtype],
            "shape": self.shape,
            "strides": self.strides,
            "kind": self.kind,
        }


@dataclass
class Sidecar:
    atol: float | None = None
    rtol: float | None = None
    precision: str | None = None
    libraries: str = ""  # the library policy, as for --libraries; empty: the run's
    determinism: str = ""  # as for --determinism; empty: the run's


@dataclass
class LoadedProblem:
    options: Options
    module: types.ModuleType
    sidecar: Sidecar
    model: torch.nn.Module
    inputs: list[Spec]
    tree: Any  # pytree structure of the arguments
    scalars: dict[int, Any]  # leaf position -> value that is no tensor
    outputs: list[tuple[torch.dtype, list[int]]] = field(default_factory=list)
    mutated: set[str] = field(default_factory=set)  # names of inputs that forward() writes
    reassigned: set[str] = field(default_factory=set)  # module attributes that forward() replaces
    flags: list[str] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)  # of the inputs of the kind "random"
    case_count: int = 1

    def blame(self, stage: str) -> contextlib.AbstractContextManager[None]:
        return blame_problem(self.options.path, stage, self.options.memory_bytes)

    def draw(self, seed: int) -> tuple[list[torch.Tensor], list[Any]]:
        """Fresh tensor arguments under a seed, and the argument list they belong to."""
        path, case = self.options.path, self.options.case
        with self.blame(case_source(case)), self.options.making():
            seed_everything(seed)
            drawn = draw_case(path, self.module, case)
        leaves, tree = flatten_arguments(self, drawn, case)
        if tree != self.tree:
            raise ProblemError(
                f"{path}: {case_source(case)} returns another structure for another seed; "
                "return the same kinds of arguments each time"
            )
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self._check_constants(leaves)
        for spec, tensor in zip(self.inputs, tensors, strict=False):
            if list(tensor.shape) != spec.shape or tensor.dtype != spec.dtype:
                raise ProblemError(
                    f"{self.options.path}: the argument '{spec.name}' changes its shape or type "
                    "with the seed; give it one shape and one type"
                )
        return tensors, leaves

    def _check_constants(self, leaves: list[Any]) -> None:
        for position, value in self.scalars.items():
            if not same_constant(leaves[position], value):
                raise ProblemError(
                    f"{self.options.path}: argument {position} of forward() is not a tensor and "
                    "changes with the seed; make it constant or a tensor"
                )

    def state(self) -> list[torch.Tensor]:
        """The model's parameters and buffers, in the contract's order."""
        named = dict(self.model.named_parameters()) | dict(self.model.named_buffers())
        return [named[spec.name].detach() for spec in self.inputs if spec.is_state()]

    def hoist(self, draws: list[Draw]) -> None:
        """Makes these draws inputs of the kernel, behind all others."""
        names = {spec.name for spec in self.inputs}
        for i, draw in enumerate(draws):
            name = f"draw{i}"
            while name in names:
                name += "_"
            self.inputs.append(
                Spec(name, "random", draw.dtype, list(draw.shape), list(draw.strides))
            )
        self.draws = draws
        if draws:
            self.flags.append("random")

    def make_draws(self, seeds: Iterator[int]) -> list[torch.Tensor]:
        place = self.options.place()
        return [draw.make(torch.Generator(place).manual_seed(next(seeds))) for draw in self.draws]

    def call_arguments(self, tensors: list[torch.Tensor]) -> list[Any]:
        """The positional arguments of forward() with these tensors in place."""
        leaves, used = [], 0
        for position in range(self.tree.num_leaves):
            if position in self.scalars:
                leaves.append(self.scalars[position])
            else:
                leaves.append(tensors[used])
                used += 1
        return list(_pytree.tree_unflatten(leaves, self.tree))

    def precision(self) -> str:
        return self.sidecar.precision or self.options.precision

    def argument_count(self) -> int:
        return sum(spec.kind == "argument" for spec in self.inputs)


def same_constant(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b or (a != a and b != b))
    except Exception:  # noqa: BLE001  a user's type may compare as it likes
        return False


def seed_everything(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed & 0x7FFFFFFFFFFFFFFF)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def flatten_arguments(problem: LoadedProblem, drawn: Any, case: int) -> tuple[list[Any], Any]:
    path, source = problem.options.path, case_source(case)
    if not isinstance(drawn, (list, tuple)):
        what = f"{source} returns" if case == 0 else f"{source} is"
        raise ProblemError(
            f"{path}: {what} {type(drawn).__name__}; it must {'return' if case == 0 else 'be'} a "
            "list of the arguments of forward()"
        )
    leaves, tree = _pytree.tree_flatten(list(drawn))
    wanted = NARROW.get(problem.options.dtype)
    for position, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            continue
        if problem.options.device:
            leaf = leaf.to(problem.options.place())
        check_tensor(path, f"argument {position} from {source}", leaf, problem.options)
        leaf = leaf.detach()
        if wanted is not None and leaf.is_floating_point():
            leaf = leaf.to(wanted)
        leaves[position] = leaf if is_dense(leaf) else leaf.contiguous()
    return leaves, tree


def check_tensor(path: str, what: str, tensor: torch.Tensor, options: Options) -> None:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ProblemError(f"{path}: {what} is not a plain dense tensor; only those are supported")
    if tensor.dtype not in DTYPE_NAMES:
        raise ProblemError(
            f"{path}: {what} has the type {str(tensor.dtype).removeprefix('torch.')}, which is "
            f"not supported; use one of {', '.join(DTYPE_NAMES.values())}"
        )
    found, wanted = tensor.device, options.place()
    if (found.type, found.index or 0) != (wanted.type, wanted.index or 0):
        where = options.device or "the CPU"
        raise ProblemError(f"{path}: {what} lies on {tensor.device}; make it on {where}")


def read_sidecar(path: str) -> Sidecar:
    name = os.path.splitext(path)[0] + ".toml"
    if not os.path.exists(name):
        return Sidecar()
    import tomllib

    try:
        with open(name, "rb") as file:
            table = tomllib.load(file)
    except (OSError, ValueError) as error:
        raise ProblemError(f"{name} cannot be read as TOML: {error}; correct it") from error
    sidecar = Sidecar()
    for key, value in table.items():
        if key in ("atol", "rtol"):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ProblemError(f"{name}: {key} must be a number that is not negative")
            setattr(sidecar, key, float(value))
        elif key == "precision":
            if value not in PRECISIONS:
                raise ProblemError(f"{name}: precision must be one of {', '.join(PRECISIONS)}")
            sidecar.precision = value
        elif key == "libraries":
            if not isinstance(value, str) or not value:
                raise ProblemError(f"{name}: libraries must be a text: none, any, or names")
            sidecar.libraries = value
        elif key == "determinism":
            if value not in DETERMINISMS:
                raise ProblemError(f"{name}: determinism must be one of {', '.join(DETERMINISMS)}")
            sidecar.determinism = value
        else:
            known = "atol, rtol, precision, libraries, determinism"
            raise ProblemError(f"{name}: unknown key '{key}'; known are {known}")
    return sidecar


def _execute(options: Options) -> types.ModuleType:
    path = options.path
    module = types.ModuleType("kernelevolve_problem")
    module.__file__ = path
    with blame_problem(path, "reading", options.memory_bytes), open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules[module.__name__] = module
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    with blame_problem(path, "import", options.memory_bytes), options.making():
        exec(code, module.__dict__)  # noqa: S102  running the user's problem is the task
    for name in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(getattr(module, name, None)):
            raise ProblemError(
                f"{path} defines no {name}; a problem needs the class Model and the functions "
                "get_inputs() and get_init_inputs()"
            )
    return module


def execute_file(path: str) -> types.ModuleType:
    """The problem's module alone, without a model. Raises ProblemError."""
    return _execute(Options(path))


def _build_model(options: Options, module: types.ModuleType) -> torch.nn.Module:
    path = options.path
    with blame_problem(path, "get_init_inputs()", options.memory_bytes), options.making():
        seed_everything(options.seed)
        arguments = module.get_init_inputs()
    if not isinstance(arguments, (list, tuple)):
        raise ProblemError(
            f"{path}: get_init_inputs() returns {type(arguments).__name__}; it must return a list "
            "of the arguments of Model()"
        )
    with blame_problem(path, "construction of Model", options.memory_bytes), options.making():
        seed_everything(options.seed ^ 0x6D6F64656C)
        model = module.Model(*arguments)
    if not isinstance(model, torch.nn.Module):
        raise ProblemError(f"{path}: Model is no torch.nn.Module; derive it from torch.nn.Module")
    if options.dtype != "as-is":
        model.to(NARROW[options.dtype])
    if options.device:
        model.to(options.place())
    return model


def argument_names(module: types.ModuleType, count: int) -> list[str]:
    try:
        parameters = inspect.signature(module.Model.forward).parameters.values()
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in parameters if p.kind in by_position][1:]
    except (TypeError, ValueError):
        names = []
    return names + [f"argument{i}" for i in range(len(names), count)]


def _argument_specs(problem: LoadedProblem, drawn: Any, leaves: list[Any]) -> list[Spec]:
    names = argument_names(problem.module, len(drawn))
    paths, _ = _pytree.tree_flatten_with_path(list(drawn))
    specs = []
    for (keys, _), leaf in zip(paths, leaves, strict=True):
        if isinstance(leaf, torch.Tensor):
            inner = [str(getattr(k, "idx", getattr(k, "key", k))) for k in keys[1:]]
            name = ".".join([names[keys[0].idx], *inner])
            shape = list(leaf.shape)
            specs.append(Spec(name, "argument", leaf.dtype, shape, normal_strides(leaf)))
    return specs


def normal_strides(tensor: torch.Tensor) -> list[int]:
    """The tensor's strides; those of extents 0 and 1, which mean nothing, as if contiguous."""
    shape = list(tensor.shape)
    if tensor.is_contiguous():
        return dense_strides(shape)
    return list(tensor.stride())


def _state_specs(problem: LoadedProblem) -> list[Spec]:
    path = problem.options.path
    specs = []
    for kind, named in (
        ("parameter", problem.model.named_parameters()),
        ("buffer", problem.model.named_buffers()),
    ):
        for name, tensor in named:
            if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
                raise ProblemError(
                    f"{path}: the {kind} '{name}' has no shape yet; use modules that are not lazy"
                )
            check_tensor(path, f"the {kind} '{name}'", tensor, problem.options)
            shape = list(tensor.shape)
            strides = normal_strides(tensor) if is_dense(tensor) else dense_strides(shape)
            specs.append(Spec(name, kind, tensor.dtype, shape, strides))
    return specs


def _first_draw(problem: LoadedProblem, report: Report) -> tuple[Any, list[Any]]:
    """The arguments of the process's case and their leaves; notes structure and case count."""
    options = problem.options
    path, case = options.path, options.case
    report("get_inputs()")
    with problem.blame("get_inputs()"), options.making():
        seed_everything(options.seed)
        drawn = draw_case(path, problem.module, 0)
    leaves, problem.tree = flatten_arguments(problem, drawn, 0)
    if getattr(problem.module, "get_input_cases", None) is None:
        return drawn, leaves
    report("get_input_cases()")
    with problem.blame("get_input_cases()"), options.making():
        seed_everything(options.seed)
        cases = list_cases(path, problem.module)
    problem.case_count = 1 + len(cases)
    if case == 0:
        return drawn, leaves
    chosen = pick_case(path, cases, case)
    others, tree = flatten_arguments(problem, chosen, case)
    _check_case(problem, leaves, others, tree)
    return chosen, others


def _check_case(problem: LoadedProblem, first: list[Any], own: list[Any], tree: Any) -> None:
    """Refuses a case that differs from get_inputs() in more than shapes."""
    where = f"{problem.options.path}: {case_source(problem.options.case)}"
    if tree != problem.tree:
        raise ProblemError(
            f"{where} has another structure than get_inputs(); a case may change shapes only"
        )
    for position, (theirs, mine) in enumerate(zip(first, own, strict=True)):
        if isinstance(theirs, torch.Tensor) and isinstance(mine, torch.Tensor):
            if theirs.dtype != mine.dtype:
                raise ProblemError(
                    f"{where} has the type {DTYPE_NAMES[mine.dtype]} for argument {position}, "
                    f"which is {DTYPE_NAMES[theirs.dtype]} in get_inputs(); a case may change "
                    "shapes only"
                )
        elif not same_constant(theirs, mine):
            raise ProblemError(
                f"{where} has another argument {position} than get_inputs(), which is not a "
                "tensor there; a case may change shapes of tensors only"
            )


def load(options: Options, report: Report) -> LoadedProblem:
    """Executes the file, builds the model and draws inputs once. Raises ProblemError."""
    if options.device:
        enter(options.place())
    report("import of the problem")
    sidecar = read_sidecar(options.path)
    module = _execute(options)
    report("construction of Model")
    model = _build_model(options, module)
    problem = LoadedProblem(options, module, sidecar, model, [], None, {})
    if options.device:
        set_precision(problem.precision())
    drawn, leaves = _first_draw(problem, report)
    problem.scalars = {
        i: copy.deepcopy(x) for i, x in enumerate(leaves) if not isinstance(x, torch.Tensor)
    }
    specs = _argument_specs(problem, drawn, leaves)
    if not specs:
        raise ProblemError(
            f"{options.path}: get_inputs() returns no tensor; there is nothing to compute on"
        )
    del drawn, leaves
    problem.inputs = specs + _state_specs(problem)
    if problem.scalars:
        problem.draw(options.seed + 1)  # refuses constants that change with the seed
    return problem


def output_tensors(options: Options, result: Any) -> list[torch.Tensor]:
    """The tensors that forward() returned, in order. Anything else is refused."""
    path = options.path
    leaves, _ = _pytree.tree_flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise ProblemError(
                f"{path}: forward() returns {type(leaf).__name__}; it must return tensors only"
            )
        check_tensor(path, "a result of forward()", leaf, options)
    if not leaves:
        raise ProblemError(f"{path}: forward() returns no tensor; return what it computes")
    return leaves


def numbered(seed: int, request: int, purpose: str) -> Iterator[int]:
    """Independent 63-bit seeds for one purpose (splitmix64 over the secret and request seeds)."""
    state = (seed * 0x9E3779B97F4A7C15 + request * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    for byte in purpose.encode():
        state = (state ^ byte) * 0x100000001B3 & (2**64 - 1)
    while True:
        state = (state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        mixed = state
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & (2**64 - 1)
        yield (mixed ^ (mixed >> 31)) >> 1
