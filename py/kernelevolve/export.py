# SPDX-License-Identifier: Apache-2.0
"""The problem as a graph of core ATen operations, by torch.export, written as plain JSON values.

Schema: see src/ir/graph.cpp. Recurrent operations stay whole, because their decomposition unrolls
the time loop. Operations that draw random numbers stay whole, too: each is replaced by an input of
the kind `random`, in the order in which forward() draws (draws.py).
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from analysis import reduction_and_flops
from draws import FIXED, NAMED, dropout_by_noise, fill_of, hides_draws, probabilities
from memory import dense_strides
from problem import DTYPE_NAMES, LoadedProblem, normal_strides

CONSTANT_ELEMENTS_MAX = 4096
KEPT_WHOLE = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# Nodes without a tensor result that only check something already known.
CHECKS = ("_assert_async", "_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range")


class ExportError(Exception):
    """The graph cannot be written down; the message says why in a noun phrase."""


@dataclass
class ExportedGraph:
    program: torch.export.ExportedProgram
    json: dict[str, Any]
    node_of_output: list[torch.fx.Node]
    outputs: list[torch.Tensor]  # fakes: shapes and types
    mutated: set[str]  # names of parameters, buffers and arguments that forward() writes


def trace(model: torch.nn.Module, arguments: list[Any]) -> torch.export.ExportedProgram:
    """The program in core ATen operations. What is raised comes from torch or from the model."""
    with torch.no_grad():
        program = torch.export.export(model, tuple(arguments), strict=False)
        table = torch.export.default_decompositions()
        for name in (*KEPT_WHOLE, *FIXED, *NAMED):
            packet = getattr(torch.ops.aten, name)
            for overload in packet.overloads():
                table.pop(getattr(packet, overload), None)
        table[torch.ops.aten.native_dropout.default] = dropout_by_noise
        return program.run_decompositions(table)


def draws_numbers(program: torch.export.ExportedProgram) -> bool:
    """Whether forward() draws, be it inside an operation kept whole. Raises Unsupported."""
    return any(
        fill_of(node.target, node.args, node.kwargs) is not None
        or hides_draws(node.target, node.args, node.kwargs)
        for node in program.graph.nodes
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
    )


def write_graph(problem: LoadedProblem, program: torch.export.ExportedProgram) -> ExportedGraph:
    """The program as JSON, with problem.draws as inputs. Raises ExportError."""
    return _Writer(problem, program).write()


class _Writer:
    def __init__(self, problem: LoadedProblem, program: torch.export.ExportedProgram) -> None:
        self.problem = problem
        self.program = program
        self.values: list[dict[str, Any]] = []
        self.of_node: dict[torch.fx.Node, int | list[int | None]] = {}
        self.input_values: dict[str, int] = {}  # contract name -> value
        self.nodes: list[dict[str, Any]] = []
        drawn = [spec for spec in problem.inputs if spec.kind == "random"]
        self.draws = list(zip(problem.draws, drawn, strict=True))  # those still to come

    def write(self) -> ExportedGraph:
        self._placeholders()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                tensor = getattr(self.program.graph_module, str(node.target), None)
                if not isinstance(tensor, torch.Tensor):
                    raise ExportError(f"a graph inside the graph ({node.target})")
                self.of_node[node] = self._constant(node.name, tensor)
        if self.draws:
            raise ExportError("fewer random draws than forward() makes")
        outputs, nodes, mutated = self._outputs()
        inputs = []
        for spec in self.problem.inputs:
            if spec.name not in self.input_values:
                self.input_values[spec.name] = self._value(
                    spec.name, spec.dtype, spec.shape, spec.strides
                )
            inputs.append({"value": self.input_values[spec.name], "kind": spec.kind})
        json = {"values": self.values, "inputs": inputs, "nodes": self.nodes, "outputs": outputs}
        fakes = [node.meta["val"] for node in nodes]
        return ExportedGraph(self.program, json, nodes, fakes, mutated)

    # --- Values -----------------------------------------------------------------------------------

    def _value(self, name: str, dtype: torch.dtype, shape: list[int], strides: list[int]) -> int:
        if dtype not in DTYPE_NAMES:
            raise ExportError(f"a value of type {str(dtype).removeprefix('torch.')}")
        if not all(type(extent) is int for extent in shape):
            raise ExportError("a shape that depends on data")
        self.values.append(
            {"name": name, "dtype": DTYPE_NAMES[dtype], "shape": shape, "strides": strides}
        )
        return len(self.values) - 1

    def _tensor_value(self, name: str, tensor: torch.Tensor) -> int:
        shape = [int(x) if isinstance(x, int) else x for x in tensor.shape]
        return self._value(name, tensor.dtype, shape, normal_strides(tensor))

    def _constant(self, name: str, tensor: torch.Tensor) -> int:
        if tensor.numel() > CONSTANT_ELEMENTS_MAX:
            raise ExportError(
                f"a tensor of {tensor.numel()} elements that is neither parameter nor buffer; "
                "register it as a buffer"
            )
        tensor = tensor.detach().contiguous()
        value = self._tensor_value(name, tensor)
        numbers = tensor.to(torch.float64) if tensor.is_floating_point() else tensor.long()
        self.values[value]["constant"] = [_number(x) for x in numbers.flatten().tolist()]
        return value

    def _placeholders(self) -> None:
        state = self._names_of_state()
        arguments = [spec.name for spec in self.problem.inputs if spec.kind == "argument"]
        used = 0
        by_name = {node.name: node for node in self.program.graph.nodes if node.op == "placeholder"}
        for entry in self.program.graph_signature.input_specs:
            node = by_name[entry.arg.name]
            tensor = node.meta.get("val")
            if entry.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                self._input(node, state[str(entry.target)])
            elif entry.kind == InputKind.CONSTANT_TENSOR:
                constant = self.program.constants[str(entry.target)]
                self.of_node[node] = self._constant(node.name, constant)
            elif entry.kind == InputKind.USER_INPUT and isinstance(tensor, torch.Tensor):
                self._input(node, arguments[used])
                used += 1
            elif entry.kind != InputKind.USER_INPUT:
                raise ExportError(f"an input of the kind {entry.kind.name.lower()}")

    def _input(self, node: torch.fx.Node, name: str) -> None:
        self.of_node[node] = self._input_value(name)

    def _input_value(self, name: str) -> int:
        if name not in self.input_values:
            spec = next(spec for spec in self.problem.inputs if spec.name == name)
            self.input_values[name] = self._value(name, spec.dtype, spec.shape, spec.strides)
        return self.input_values[name]

    def _names_of_state(self) -> dict[str, str]:
        """Every qualified name of a parameter or buffer -> the name the contract uses for it."""
        contract = {id(t): n for n, t in self.problem.model.named_buffers()}
        contract |= {id(t): n for n, t in self.problem.model.named_parameters()}
        names = {}
        for named in (
            self.problem.model.named_buffers(remove_duplicate=False),
            self.problem.model.named_parameters(remove_duplicate=False),
        ):
            names |= {name: contract[id(tensor)] for name, tensor in named}
        return names

    # --- Nodes ------------------------------------------------------------------------------------

    def _call(self, node: torch.fx.Node) -> None:
        if node.target is operator.getitem:
            source, index = node.args
            results = self.of_node[source]  # type: ignore[index]
            assert isinstance(results, list) and isinstance(index, int)
            value = results[index]
            assert value is not None
            self.of_node[node] = value
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise ExportError(f"the operation {node.target}, which is not an ATen operation")
        if node.target._schema.name.removeprefix("aten::") in CHECKS:
            return
        meta = node.meta.get("val")
        if fill_of(node.target, node.args, node.kwargs) is not None:
            self._draw(node, meta)
            return
        args = [self._arg(arg) for arg in node.args]
        kwargs = [[name, self._arg(arg)] for name, arg in node.kwargs.items()]
        if isinstance(meta, torch.Tensor):
            value = self._tensor_value(node.name, meta)
            self.of_node[node], results = value, [value]
        elif isinstance(meta, (tuple, list)):
            ids = [
                self._tensor_value(f"{node.name}_{i}", m) if isinstance(m, torch.Tensor) else None
                for i, m in enumerate(meta)
            ]
            self.of_node[node], results = ids, [i for i in ids if i is not None]
        else:
            raise ExportError(f"a result of {node.target} that is no tensor")
        _, flops = reduction_and_flops(node)
        self._node(str(node.target), args, kwargs, results, int(flops))

    def _draw(self, node: torch.fx.Node, result: torch.Tensor) -> None:
        """The next input of the kind `random`, made to what the operation returns."""
        draw, spec = self.draws.pop(0) if self.draws else (None, None)
        same = draw is not None and draw.shape == tuple(result.shape)
        if not same or draw.fill != fill_of(node.target, node.args, node.kwargs):
            raise ExportError("other random draws than forward() makes")
        value = self._input_value(spec.name)
        if draw.fill.compared:
            chances = self._arg(probabilities(node.target, node.args, node.kwargs))
            shape = list(result.shape)
            below = self._value(f"{node.name}_below", torch.bool, shape, dense_strides(shape))
            self._node("aten.lt.Tensor", [{"value": value}, chances], [], [below])
            value = below
        dtype = DTYPE_NAMES.get(result.dtype, "")
        if self.values[value]["dtype"] != dtype:
            cast = self._tensor_value(node.name, result)
            to = [["dtype", {"dtype": dtype}]]
            self._node("aten._to_copy.default", [{"value": value}], to, [cast])
            value = cast
        self.of_node[node] = value

    def _node(
        self, op: str, args: list[Any], kwargs: list[Any], results: list[int], flops: int = 0
    ) -> None:
        """`flops` as of the operation that was traced: a cast or comparison of ours costs none."""
        self.nodes.append(
            {"op": op, "args": args, "kwargs": kwargs, "results": results, "flops": flops}
        )

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, torch.fx.Node):
            value = self.of_node.get(arg)
            if not isinstance(value, int):
                raise ExportError(f"the use of {arg.name}, which is no tensor")
            return {"value": value}
        if arg is None or isinstance(arg, bool):
            return arg
        if isinstance(arg, int):
            return int(arg)
        if isinstance(arg, float):
            return _number(arg)
        if isinstance(arg, str):
            return {"str": arg}
        if isinstance(arg, torch.dtype):
            if arg not in DTYPE_NAMES:
                raise ExportError(f"the type {str(arg).removeprefix('torch.')}")
            return {"dtype": DTYPE_NAMES[arg]}
        if isinstance(arg, torch.device) and self.problem.options.device:
            return {"str": "cpu"}  # the graph is that of the processor
        if isinstance(arg, (torch.device, torch.layout, torch.memory_format)):
            return {"str": str(arg).removeprefix("torch.")}
        if isinstance(arg, (list, tuple)):
            return [self._arg(item) for item in arg]
        raise ExportError(f"an argument of the type {type(arg).__name__}")

    def _outputs(self) -> tuple[list[int], list[torch.fx.Node], set[str]]:
        state = self._names_of_state()
        by_name = {node.name: node for node in self.program.graph.nodes}
        placeholders = [
            entry.arg.name
            for entry in self.program.graph_signature.input_specs
            if entry.kind == InputKind.USER_INPUT
            and isinstance(by_name[entry.arg.name].meta.get("val"), torch.Tensor)
        ]
        values, nodes, mutated = [], [], set()
        for entry in self.program.graph_signature.output_specs:
            if entry.kind == OutputKind.USER_OUTPUT:
                node = by_name.get(entry.arg.name)
                if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
                    raise ExportError("an output that is no tensor")
                value = self.of_node[node]
                assert isinstance(value, int)
                values.append(value)
                nodes.append(node)
            elif entry.kind == OutputKind.USER_INPUT_MUTATION:
                mutated.add(self.problem.inputs[placeholders.index(str(entry.target))].name)
            elif entry.target is not None:
                mutated.add(state[str(entry.target)])
        return values, nodes, mutated


def _number(value: float | int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value
