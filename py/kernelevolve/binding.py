# SPDX-License-Identifier: Apache-2.0
"""Models whose parameters and buffers are given tensors: one module object per input set.

Binding is free at call time, unlike torch.func.functional_call, so that baselines pay nothing.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from draws import Replay
from problem import LoadedProblem


def _bind(problem: LoadedProblem, tensors: list[torch.Tensor]) -> torch.nn.Module:
    """A copy of the model whose state is `tensors`, in the contract's order, without copying."""
    model = problem.model
    state: dict[str, torch.Tensor] = dict(model.named_parameters())
    state.update(model.named_buffers())
    memo: dict[int, Any] = {}
    for spec, tensor in zip(problem.inputs, tensors, strict=True):
        if spec.kind == "parameter":
            original = state[spec.name]
            memo[id(original)] = torch.nn.Parameter(
                tensor, tensor.is_floating_point() and original.requires_grad
            )
        elif spec.kind == "buffer":
            memo[id(state[spec.name])] = tensor
    return copy.deepcopy(model, memo)


class BoundModel:
    """model(*arguments) is the call. Whatever forward() mutates is private here and restorable.

    Calling the object itself gives forward() the draws among the tensors.
    """

    def __init__(self, problem: LoadedProblem, tensors: list[torch.Tensor]) -> None:
        own = list(tensors)
        self._restore: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i, spec in enumerate(problem.inputs):
            if spec.name in problem.mutated:
                own[i] = tensors[i].clone()
                self._restore.append((own[i], tensors[i]))
        with problem.blame("copying of Model"):
            self.model = _bind(problem, own)
        self._flatten_recurrent(problem, tensors)
        self.arguments = problem.call_arguments(own[: problem.argument_count()])
        self._path, self._draws = problem.options.path, problem.draws
        self._numbers = own[len(own) - len(problem.draws) :]
        self._attributes: list[tuple[torch.nn.Module, str, Any]] = []
        for module in self.model.modules():
            for key, value in vars(module).items():
                if key in problem.reassigned:
                    self._attributes.append((module, key, value))
        self._saved = [copy.deepcopy(value) for _, _, value in self._attributes]

    def _flatten_recurrent(self, problem: LoadedProblem, tensors: list[torch.Tensor]) -> None:
        """Has the weights of recurrent layers lie as a device's library wants them, in one block.

        They are copies then. Elsewhere the library would copy them in every call.
        """
        flat = [m for m in self.model.modules() if isinstance(m, torch.nn.RNNBase)]
        flat = [m for m in flat if all(w.is_cuda for w in m.parameters())]
        for module in flat:
            module.flatten_parameters()
        moved = {id(weight) for module in flat for weight in module.parameters()}
        named = dict(self.model.named_parameters())
        for spec, tensor in zip(problem.inputs, tensors, strict=True):
            if spec.kind == "parameter" and id(named[spec.name]) in moved:
                self._restore.append((named[spec.name].detach(), tensor))

    def restore(self) -> None:
        """Puts back every state that forward() may have changed."""
        for own, original in self._restore:
            own.copy_(original)
        for (module, key, _), saved in zip(self._attributes, self._saved, strict=True):
            setattr(module, key, copy.deepcopy(saved))

    def state_of_attributes(self) -> list[Any]:
        """The present values of the attributes that forward() replaces."""
        return [getattr(module, key) for module, key, _ in self._attributes]

    def __call__(self) -> Any:
        if not self._draws:
            return self.model(*self.arguments)
        with Replay(self._path, self._draws, self._numbers) as replay:
            result = self.model(*self.arguments)
        replay.finish()
        return result


def _widen(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return type(value)(_widen(v) for v in value)
    return value


def bind_float64(problem: LoadedProblem, tensors: list[torch.Tensor]) -> BoundModel:
    """The problem with every floating tensor of its inputs and state in float64."""
    wide = [t.double() if t.is_floating_point() else t.clone() for t in tensors]
    bound = BoundModel(problem, wide)
    state_names = {"_parameters", "_buffers", "_modules"}
    for module in bound.model.modules():
        for key, value in list(vars(module).items()):
            if key not in state_names and not key.startswith("_flat_weight"):
                vars(module)[key] = _widen(value)
    return bound


def bind_on_processor(problem: LoadedProblem, mode: Any = None) -> BoundModel:
    """A device's problem with tensors on the processor that hold no data, however large.

    What is no input keeps its values: a graph holds them as constants.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with mode or FakeTensorMode():
        fakes = [
            torch.empty_strided(spec.shape, spec.strides, dtype=spec.dtype)
            for spec in problem.inputs
        ]
    bound = BoundModel(problem, fakes)
    for module in bound.model.modules():
        for key, value in list(vars(module).items()):
            if key not in ("_parameters", "_buffers", "_modules"):
                vars(module)[key] = _on_processor(value)
    return bound


def _on_processor(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if type(value) in (list, tuple):
        return type(value)(_on_processor(v) for v in value)
    return value


class float64_default:  # noqa: N801  used as a with statement
    def __enter__(self) -> None:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)


def observe_state(problem: LoadedProblem, bound: BoundModel) -> dict[str, Any]:
    """What observed_changes() compares: versions of tensors, identities of attributes."""
    seen: dict[str, Any] = {}
    for name, tensor in [*bound.model.named_parameters(), *bound.model.named_buffers()]:
        seen[name] = tensor._version
    names = [spec.name for spec in problem.inputs if spec.kind == "argument"]
    leaves, _ = torch.utils._pytree.tree_flatten(bound.arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    seen.update({n: t._version for n, t in zip(names, tensors, strict=True)})
    for module in bound.model.modules():
        for key, value in vars(module).items():
            if not key.startswith("_"):
                version = value._version if isinstance(value, torch.Tensor) else 0
                seen.setdefault("." + key, []).append((id(value), version))
    return seen


def record_changes(problem: LoadedProblem, before: dict[str, Any], after: dict[str, Any]) -> None:
    for name, value in after.items():
        if before.get(name) != value:
            if name.startswith("."):
                problem.reassigned.add(name[1:])
            else:
                problem.mutated.add(name)
