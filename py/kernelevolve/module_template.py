# SPDX-License-Identifier: Apache-2.0
"""A drop-in for a PyTorch Model whose forward() runs a kernel that was proved against it.

    from THIS_FILE import ModelNew
    model = ModelNew(*init_arguments)       # same arguments, parameters and state_dict as Model

The kernel runs only where it was proved: manifest.json beside this file lists shapes (of every
case, where there are several), types, strides, constants and the processor or device. For the rest
(another shape, gradients, autocast, another machine) the original forward() runs, and one warning
says why. Random numbers that the original draws in forward() are drawn here by the same generator
in the same order and given to the kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import inspect
import json
import random
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import library as torch_library
from torch.utils import _pytree

FOLDER = Path(__file__).resolve().parent
MANIFEST: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
# What it runs on, when that is not the processor: type, name, capability.
DEVICE: dict[str, Any] = MANIFEST.get("device", {})
DEVICE_TYPE: str = DEVICE.get("type", "cpu")

# name: (torch type, DLPack code, bits)
DTYPES = {
    "float64": (torch.float64, 2, 64),
    "float32": (torch.float32, 2, 32),
    "float16": (torch.float16, 2, 16),
    "bfloat16": (torch.bfloat16, 4, 16),
    "int64": (torch.int64, 0, 64),
    "int32": (torch.int32, 0, 32),
    "int16": (torch.int16, 0, 16),
    "int8": (torch.int8, 0, 8),
    "uint8": (torch.uint8, 1, 8),
    "boolean": (torch.bool, 6, 8),
}
ALIGNMENT = 64


class KeTensor(ctypes.Structure):
    """ke_tensor of kernelevolve/kernel.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype_code", ctypes.c_uint8),
        ("dtype_bits", ctypes.c_uint8),
        ("dtype_lanes", ctypes.c_uint16),
    ]


def _dense_strides(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


class Spec:
    """One tensor as it was when the kernel was proved."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.name: str = entry["name"]
        self.kind: str = entry.get("kind", "output")
        self.dtype, self.code, self.bits = DTYPES[entry["dtype"]]
        self.shape: tuple[int, ...] = tuple(entry["shape"])
        self.strides: tuple[int, ...] = tuple(
            entry.get("strides") or _dense_strides(entry["shape"])
        )
        self.contiguous = list(self.strides) == _dense_strides(list(self.shape))

    def fits(self, tensor: torch.Tensor) -> bool:
        return (
            tensor.shape == self.shape
            and tensor.dtype == self.dtype
            and tensor.device.type == DEVICE_TYPE
            and tensor.layout == torch.strided
            and self._laid_out(tensor)
        )

    def _laid_out(self, tensor: torch.Tensor) -> bool:
        # Strides of extents 0 and 1 mean nothing.
        return tensor.is_contiguous() if self.contiguous else tensor.stride() == self.strides

    def describe(self) -> str:
        where = f", on {DEVICE_TYPE}" if DEVICE else ""
        text = f"{self.dtype} {list(self.shape)}, strides {self.strides}"
        return f"'{self.name}' must be {text}{where}"


class ProvedCase:
    """The tensors of one shape case."""

    def __init__(self, number: int, entry: dict[str, Any]) -> None:
        self.number = number
        self.inputs = [Spec(spec) for spec in entry["inputs"]]
        self.outputs = [Spec(spec) for spec in entry["outputs"]]
        self.drawn = [spec for spec in self.inputs if spec.kind == "random"]  # the last ones
        self.call = _Call(self.inputs, self.outputs)

    def has_shapes(self, tensors: list[Any]) -> bool:
        """Of all inputs, or of all but those that are drawn."""
        return all(
            isinstance(tensor, torch.Tensor) and tensor.shape == spec.shape
            for spec, tensor in zip(self.inputs, tensors, strict=False)
        )


class _Call(threading.local):
    """One thread's argument arrays; everything but the addresses is filled in once."""

    def __init__(self, inputs: list[Spec], outputs: list[Spec]) -> None:
        self.keep: list[Any] = []
        self.inputs = self._array(inputs)
        self.outputs = self._array(outputs)

    def _array(self, specs: list[Spec]) -> Any:
        array = (KeTensor * max(len(specs), 1))()
        for entry, spec in zip(array, specs, strict=False):
            entry.ndim = len(spec.shape)
            entry.dtype_code, entry.dtype_bits, entry.dtype_lanes = spec.code, spec.bits, 1
            if spec.shape:
                kind = ctypes.c_int64 * len(spec.shape)
                shape, strides = kind(*spec.shape), kind(*spec.strides)
                self.keep += [shape, strides]
                entry.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
                entry.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
        return array


# Cases differ in shapes alone: names and types are those of the first.
CASES = [ProvedCase(i, entry) for i, entry in enumerate(MANIFEST.get("cases", [MANIFEST]))]
INPUTS, OUTPUTS = CASES[0].inputs, CASES[0].outputs
ARGUMENTS = [spec for spec in INPUTS if spec.kind == "argument"]
STATE = [spec for spec in INPUTS if spec.kind in ("parameter", "buffer")]
STATE_PATHS = [tuple(spec.name.split(".")) for spec in STATE]


def _case_of(tensors: list[Any]) -> ProvedCase | None:
    """The case with the inputs' shapes; a lone one without looking: its tensors say what fits."""
    if len(CASES) == 1:
        return CASES[0]
    return next((case for case in CASES if case.has_shapes(tensors)), None)


def _proved_shapes() -> str:
    cases = (", ".join(str(list(s.shape)) for s in c.inputs[: len(ARGUMENTS)]) for c in CASES)
    return f"no case was proved with these shapes, only with {'; '.join(cases)}"


def _attribute(owner: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        owner = getattr(owner, name)
    return owner


# --- The processor or the device ------------------------------------------------------------------
def _processor_differs() -> str:
    """Why the library must not run here; empty when it may."""
    wanted = MANIFEST["processor"]
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
    if found.get("model name", "") != wanted["model"]:
        return (
            f"it was proved on '{wanted['model']}' and this is "
            f"'{found.get('model name', 'an unknown processor')}'"
        )
    missing = set(wanted["features"]) - set(found.get("flags", "").split())
    return f"the processor lacks {', '.join(sorted(missing))}" if missing else ""


def _device_reasons() -> list[str]:
    """For each device, why the kernel must not run there; empty where it may."""
    if DEVICE_TYPE != "cuda" or not torch.cuda.is_available():
        return [""]
    reasons = []
    for i in range(torch.cuda.device_count()):
        name, capability = torch.cuda.get_device_name(i), list(torch.cuda.get_device_capability(i))
        proved = name == DEVICE["name"] and capability == DEVICE["capability"]
        reason = f"it was proved on '{DEVICE['name']}' and this is '{name}'"
        reasons.append("" if proved else reason)
    return reasons


# --- The library ----------------------------------------------------------------------------------
def _load() -> tuple[Any, str]:
    return _load_runtime() if DEVICE else _load_library()


def _load_runtime() -> tuple[Any, str]:
    """What calls a device's kernel, in a file of its own."""
    if DEVICE_TYPE == "cuda" and not torch.cuda.is_available():
        return None, f"it was proved on '{DEVICE['name']}' and there is no CUDA device here"
    try:
        runtime = _load_file(MANIFEST["runtime"], "runtime").Runtime(FOLDER, MANIFEST)
    except Exception as error:  # noqa: BLE001  whatever fails, the original works
        return None, f"the kernel cannot be loaded: {error}"
    return runtime, ""


def _load_file(file: str, role: str) -> types.ModuleType:
    name = f"kernelevolve_{role}_{MANIFEST['operator']}"
    spec = importlib.util.spec_from_file_location(name, FOLDER / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_library() -> tuple[Any, str]:
    reason = _processor_differs()
    if reason:
        return None, reason
    try:
        library = ctypes.CDLL(str(FOLDER / MANIFEST["library"]))
        run = library.ke_module_run
    except (OSError, AttributeError) as error:
        return None, f"the library cannot be loaded: {error}"
    run.restype = ctypes.c_int
    run.argtypes = [
        ctypes.POINTER(KeTensor),
        ctypes.c_int32,
        ctypes.POINTER(KeTensor),
        ctypes.c_int32,
        ctypes.c_int32,
    ]
    return run, ""


_run_library, _no_library = _load()


def _draws(case: ProvedCase) -> list[torch.Tensor]:
    """The numbers that the original forward() would draw now."""
    drawn = []
    for spec, how in zip(case.drawn, MANIFEST.get("draws", []), strict=True):
        parameters = how["parameters"]
        if how["method"] == "random_":
            parameters = [int(bound) for bound in parameters]
        numbers = torch.empty_strided(
            spec.shape, spec.strides, dtype=spec.dtype, device=DEVICE_TYPE
        )
        drawn.append(getattr(numbers, how["method"])(*parameters))
    return drawn


def _aligned(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.resolve_neg()  # the imaginary part of a conjugate is negated lazily
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()


def _run(case: ProvedCase, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Calls the kernel on tensors that fit the case."""
    if DEVICE:
        inputs = [tensor.detach().resolve_neg() for tensor in tensors]
        results: list[torch.Tensor] = _run_library.run(case.number, inputs, case.outputs)
        return results
    call = case.call
    results = [torch.empty(spec.shape, dtype=spec.dtype) for spec in case.outputs]
    held = []  # copies live until the kernel has returned
    for entry, tensor in zip(call.inputs, tensors, strict=False):
        tensor = _aligned(tensor)
        held.append(tensor)
        entry.data = tensor.data_ptr()
    for entry, tensor in zip(call.outputs, results, strict=False):
        entry.data = tensor.data_ptr()
    code = _run_library(
        call.inputs, len(INPUTS), call.outputs, len(OUTPUTS), torch.get_num_threads()
    )
    if code != 0:
        raise RuntimeError(f"the kernel of {MANIFEST['problem']} failed with code {code}")
    return results


# --- The operator, for torch.compile and torch.export ---------------------------------------------
def _known_case(tensors: tuple[torch.Tensor, ...]) -> ProvedCase:
    case = _case_of(list(tensors))
    if case is None:
        raise RuntimeError(f"{MANIFEST['problem']}: {_proved_shapes()}")
    return case


def _register() -> Callable[..., Any]:
    library = torch_library.Library("kernelevolve", "FRAGMENT")
    name = MANIFEST["operator"]
    arguments = ", ".join(f"Tensor x{i}" for i in range(len(INPUTS)))
    result = "Tensor" if len(OUTPUTS) == 1 else f"({', '.join('Tensor' for _ in OUTPUTS)})"
    if not hasattr(torch.ops.kernelevolve, name):  # else: this file is loaded a second time
        library.define(f"{name}({arguments}) -> {result}")

        def compute(*tensors: torch.Tensor) -> Any:
            results = _run(_known_case(tensors), list(tensors))
            return results[0] if len(results) == 1 else tuple(results)

        def fake(*tensors: torch.Tensor) -> Any:
            outputs = _known_case(tensors).outputs
            results = [tensors[0].new_empty(s.shape, dtype=s.dtype) for s in outputs]
            return results[0] if len(results) == 1 else tuple(results)

        library.impl(name, compute, DEVICE_TYPE.upper())
        torch_library.register_fake(f"kernelevolve::{name}", fake, lib=library)
        _registered.append(library)  # the registration ends with the object
    return getattr(torch.ops.kernelevolve, name)


_registered: list[torch_library.Library] = []
_operator = _register() if _run_library is not None else None


# --- The original ---------------------------------------------------------------------------------
original = _load_file(MANIFEST["original"], "original")
Model = original.Model
get_inputs = original.get_inputs
get_init_inputs = original.get_init_inputs
if DEVICE and _run_library is not None:
    _run_library.init_inputs = get_init_inputs


@contextlib.contextmanager
def _random_state_kept() -> Any:
    state, own = torch.get_rng_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(own)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        return tensors and torch.equal(a.cpu(), b.cpu())
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b or (a != a and b != b))


def _same_construction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether Model was constructed as when the kernel was proved: its constants depend on it."""
    with _random_state_kept():
        proved = tuple(get_init_inputs())
    try:
        signature = inspect.signature(Model)
        here, there = signature.bind(*args, **kwargs), signature.bind(*proved)
    except (TypeError, ValueError):
        return not kwargs and _same(args, proved)
    here.apply_defaults()
    there.apply_defaults()
    return here.arguments.keys() == there.arguments.keys() and all(
        _same(value, there.arguments[key]) for key, value in here.arguments.items()
    )


def _reads_training(code: types.CodeType) -> bool:
    return "training" in code.co_names or any(
        _reads_training(part) for part in code.co_consts if isinstance(part, types.CodeType)
    )


def _mode_matters(module: torch.nn.Module) -> bool:
    """Whether some part of the model looks at `training`, as dropout and batch norm do."""
    for part in module.modules():
        for kind in type(part).__mro__:
            if kind in (torch.nn.Module, object, ModelNew):
                continue
            if any(
                _reads_training(member.__code__)
                for member in vars(kind).values()
                if isinstance(member, types.FunctionType)
            ):
                return True
    return False


# --- The structure of arguments and results -------------------------------------------------------
def _build(structure: Any, leaves: list[Any]) -> Any:
    kind, value = structure
    if kind == "tensor":
        return leaves[value]
    if kind == "list":
        return [_build(part, leaves) for part in value]
    if kind == "tuple":
        return tuple(_build(part, leaves) for part in value)
    if kind == "dict":
        return {key: _build(part, leaves) for key, part in value}
    return None


# Per argument leaf: ["tensor", index] or ["constant", value].
_LEAVES: list[Any] = MANIFEST["call"]["leaves"]
_RESULT: Any = MANIFEST["call"]["result"]
_ONLY_TENSORS = (
    MANIFEST["call"]["flat"]
    and all(kind == "tensor" for kind, _ in _LEAVES)
    and len(_LEAVES) == len(ARGUMENTS)
)


class ModelNew(Model):
    """Model with the proved kernel in forward()."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._ke_never = _no_library
        if not self._ke_never and MANIFEST["call"]["changes_state"]:
            self._ke_never = "forward() changes the model's state, and the kernel does not"
        if not self._ke_never and not _same_construction(args, kwargs):
            self._ke_never = "the model was constructed with other arguments"
        self._ke_devices = _device_reasons()
        self._ke_mode = self.training
        self._ke_mode_matters = _mode_matters(self)
        self._ke_warned = False

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        case, tensors, reason = self._ke_tensors(args, kwargs)
        if case is None:
            self._ke_warn(reason)
            return super().forward(*args, **kwargs)
        if torch.compiler.is_compiling() or any(
            type(t) is not torch.Tensor and type(t) is not torch.nn.Parameter for t in tensors
        ):
            results = _operator(*tensors)
            results = [results] if isinstance(results, torch.Tensor) else list(results)
        else:
            results = _run(case, tensors)
        return results[0] if _RESULT[0] == "tensor" else _build(_RESULT, results)

    def _ke_tensors(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[ProvedCase | None, list[torch.Tensor], str]:
        """The case and the kernel's inputs, or None and why the kernel is not for them."""
        if self._ke_never:
            return None, [], self._ke_never
        if self._ke_mode_matters and self.training != self._ke_mode:
            return None, [], f"it was proved with training={self._ke_mode}"
        tensors, reason = _argument_tensors(self, args, kwargs)
        if tensors is None:
            return None, [], reason
        try:
            tensors += [_attribute(self, path) for path in STATE_PATHS]
        except AttributeError as error:
            return None, [], f"a parameter or buffer is gone ({error})"
        case = _case_of(tensors)
        if case is None:
            return None, [], _proved_shapes()
        for spec, tensor in zip(case.inputs, tensors, strict=False):
            if not isinstance(tensor, torch.Tensor) or not spec.fits(tensor):
                return None, [], spec.describe()
        if DEVICE:
            places = {tensor.device for tensor in tensors}
            if len(places) > 1:
                return None, [], "its tensors lie on several devices"
            elsewhere = self._ke_devices[tensors[0].device.index or 0] if tensors else ""
            if elsewhere:
                return None, [], elsewhere
        if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return None, [], "gradients are needed (use torch.no_grad())"
        if torch.is_autocast_enabled(DEVICE_TYPE):
            return None, [], "autocast is on"
        return case, tensors + _draws(case), ""

    def _ke_warn(self, reason: str) -> None:
        # A warning would break the graph that torch.compile records (and its decorator that hides
        # functions from it costs seconds to import).
        if not self._ke_warned and not torch.compiler.is_compiling():
            self._ke_warned = True
            warnings.warn(
                f"{MANIFEST['problem']}: the original forward() runs instead of the "
                f"proved kernel, because {reason}",
                stacklevel=4,
            )


def _argument_tensors(
    model: ModelNew, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[torch.Tensor] | None, str]:
    if _ONLY_TENSORS and not kwargs and len(args) == len(ARGUMENTS):
        return list(args), ""
    if kwargs:
        try:
            bound = inspect.signature(Model.forward).bind(model, *args, **kwargs)
        except TypeError as error:
            return None, f"the arguments do not fit ({error})"
        args = bound.args[1:]
        if bound.kwargs:
            return None, "it was proved with positional arguments"
    leaves, _ = _pytree.tree_flatten(list(args))
    if len(leaves) != len(_LEAVES):
        return None, f"it was proved with {len(_LEAVES)} arguments, not {len(leaves)}"
    tensors = []
    for leaf, (kind, value) in zip(leaves, _LEAVES, strict=True):
        if kind == "tensor":
            tensors.append(leaf)
        elif not _same(leaf, value):
            return None, f"it was proved with the constant {value!r}, not {leaf!r}"
    return tensors, ""
