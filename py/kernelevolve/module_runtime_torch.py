# SPDX-License-Identifier: Apache-2.0
"""Calls a proved kernel that is a PyTorch module itself (kernel.py), for the module beside it.

The kernel's ModelNew is made once for each shape case, as it was when it was proved. Before a call
its parameters and buffers become the caller's tensors.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
import threading
from pathlib import Path
from typing import Any

import torch


class _Instance:
    """A ModelNew and where its state goes."""

    def __init__(self, model: torch.nn.Module, names: list[tuple[str, str]]) -> None:
        self.model = model
        self.places: list[list[tuple[Any, str]]] = []
        for kind, wanted in names:
            found, identity = [], None
            for prefix, part in model.named_modules(remove_duplicate=False):
                held = part._parameters if kind == "parameter" else part._buffers
                for name, tensor in held.items():
                    whole = f"{prefix}.{name}" if prefix else name
                    if whole == wanted:
                        identity = id(tensor)
            for part in model.modules():  # tied: all that hold it
                held = part._parameters if kind == "parameter" else part._buffers
                found += [(part, n) for n, t in held.items() if t is not None and id(t) == identity]
            if not found:
                raise RuntimeError(f"the proved kernel has no {kind} '{wanted}'")
            self.places.append(found)
        self.kinds = [kind for kind, _ in names]
        self.given: list[Any] = [None] * len(names)

    def set_state(self, tensors: list[torch.Tensor]) -> None:
        for i, tensor in enumerate(tensors):
            if self.given[i] is tensor:
                continue
            held: Any = tensor.detach()
            if self.kinds[i] == "parameter":
                held = torch.nn.Parameter(held, requires_grad=False)
            for part, name in self.places[i]:
                setattr(part, name, held)
            self.given[i] = tensor


class Runtime:
    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        path = folder / manifest["kernel"]
        name = f"kernelevolve_kernel_{manifest['operator']}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self.module
        spec.loader.exec_module(self.module)
        entries = manifest["inputs"]
        self.arguments = sum(entry["kind"] == "argument" for entry in entries)
        self.names = [
            (entry["kind"], entry["name"])
            for entry in entries
            if entry["kind"] in ("parameter", "buffer")
        ]
        self.tree = manifest["call"]["arguments"] if "call" in manifest else ["list", []]
        self.instances: dict[tuple[int, str], _Instance] = {}
        self.lock = threading.RLock()
        self.init_inputs: Any = list  # the original's get_init_inputs(), set by the module

    def run(self, case: int, inputs: list[torch.Tensor], outputs: list[Any]) -> list[torch.Tensor]:
        """The results for inputs that fit the case; outputs: their specifications."""
        device = inputs[0].device if inputs else torch.device("cuda")
        given, state_end = self.arguments, self.arguments + len(self.names)
        with self.lock, torch.no_grad():
            instance = self._instance(case, device)
            instance.set_state(inputs[given:state_end])
            arguments = _build(self.tree, inputs[:given])
            returned = instance.model(*arguments, *inputs[state_end:])
        results = list(returned) if type(returned) in (tuple, list) else [returned]
        taken = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        return [_own(result, taken) for result in results]

    def _instance(self, case: int, device: torch.device) -> _Instance:
        key = (case, str(device))
        if key not in self.instances:
            others = [device] if device.type == "cuda" else []
            with torch.device(device), torch.random.fork_rng(others):
                torch.manual_seed(0)
                model = self.module.ModelNew(*copy.deepcopy(list(self.init_inputs())))
            self.instances[key] = _Instance(model, self.names)
        return self.instances[key]


def _build(structure: Any, leaves: list[Any]) -> Any:
    kind, value = structure
    if kind == "tensor":
        return leaves[value]
    if kind == "constant":
        return value
    if kind == "dict":
        return {key: _build(part, leaves) for key, part in value}
    parts = [_build(part, leaves) for part in value]
    return tuple(parts) if kind == "tuple" else parts


def _own(result: torch.Tensor, taken: set[int]) -> torch.Tensor:
    """Fresh and contiguous, as an operator's results are; of the inputs' memory nothing."""
    if result.numel() > 0 and result.untyped_storage().data_ptr() in taken:
        return result.clone(memory_format=torch.contiguous_format)
    return result.contiguous()
