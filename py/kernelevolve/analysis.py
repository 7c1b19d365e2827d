# SPDX-License-Identifier: Apache-2.0
"""What the judge must know about an exported graph: work, reductions, where results may jump."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from draws import fill_of

if TYPE_CHECKING:
    from export import ExportedGraph


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operations that only move or pick elements: exact in every type.
MOVES = _words(
    """
    _adaptive_max_pool2d _unsafe_view abs adaptive_max_pool2d alias all amax amin any arange
    argmax argmin as_strided bitwise_and bitwise_not bitwise_or cat clamp clamp_max clamp_min
    clone constant_pad_nd copy copy_ detach diagonal embedding empty eq expand fill flip full
    full_like gather ge gt hardtanh index index_put index_select le lift_fresh_copy logical_and
    logical_not logical_or lt masked_fill max max_pool2d max_pool2d_with_indices max_pool3d
    max_pool3d_with_indices maximum min minimum ne neg ones ones_like permute reflection_pad1d
    reflection_pad2d relu repeat replication_pad2d reshape roll scalar_tensor scatter select
    select_scatter sign slice slice_scatter sort split split_with_sizes squeeze stack t topk
    transpose tril triu unbind unfold unsqueeze upsample_nearest2d view where zeros zeros_like
    """
)
# Results that change by a finite step when an operand changes a little; the number is which
# result jumps (None: all).
JUMPS: dict[str, int | None] = dict.fromkeys(
    _words(
        """
        all any argmax argmin argsort bucketize ceil eq floor floor_divide fmod ge gt heaviside
        isinf isnan le logical_and logical_not logical_or lt ne nonzero remainder round
        searchsorted sign trunc
        """
    )
)
JUMPS |= dict.fromkeys(_words("cummax cummin kthvalue max median min mode sort topk"), 1)
ACCUMULATES = _words(
    """
    _adaptive_avg_pool2d _adaptive_avg_pool3d _cdist_forward _embedding_bag _log_softmax
    _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training _scaled_dot_product_flash_attention_for_cpu _softmax
    addmm addmv avg_pool1d avg_pool2d avg_pool3d baddbmm bmm convolution cumprod cumsum dot
    grid_sampler_2d gru index_add linalg_vector_norm logsumexp lstm mean mm mv native_batch_norm
    native_group_norm native_layer_norm norm prod rnn_relu rnn_tanh scaled_dot_product_attention
    scatter_add scatter_reduce std sum upsample_bilinear2d var var_mean
    """
)


@dataclass
class OutputTraits:
    behind_product: bool = True  # infinities may turn into NaN and back
    jumps: bool = True  # a small error before it can change it by a finite step


@dataclass
class Analysis:
    longest_reduction: int
    flops: int
    outputs: list[OutputTraits]


def op_name(node: torch.fx.Node) -> str:
    schema = getattr(node.target, "_schema", None)
    return schema.name.removeprefix("aten::") if schema is not None else str(node.target)


def _meta(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, torch.fx.Node) else None


def _numel(meta: Any) -> int:
    if isinstance(meta, torch.Tensor):
        return meta.numel()
    if isinstance(meta, (tuple, list)):
        return max((_numel(item) for item in meta), default=0)
    return 0


def reduction_and_flops(node: torch.fx.Node) -> tuple[int, int]:
    """(elements that one result sums up, floating operations) of one call."""
    name = op_name(node)
    first = _meta(node.args[0]) if node.args else None
    out = _numel(_meta(node))
    if name in ("mm", "bmm"):
        depth = first.shape[-1]
        return depth, 2 * out * depth
    if name in ("addmm", "baddbmm", "addmv"):
        depth = _meta(node.args[1]).shape[-1]
        return depth, 2 * out * depth
    if name in ("mv", "dot"):
        return first.shape[-1], 2 * out * first.shape[-1]
    if name == "convolution":
        weight, transposed = _meta(node.args[1]), bool(node.args[6])
        window = math.prod(weight.shape[2:])
        if transposed:
            groups = int(node.args[8])  # type: ignore[call-overload]
            depth = weight.shape[0] // groups * window
            return depth, 2 * first.numel() * weight.shape[1] * window
        return weight.shape[1] * window, 2 * out * weight.shape[1] * window
    if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return _recurrent(node)
    if "scaled_dot_product" in name:
        key = _meta(node.args[1])
        depth = max(first.shape[-1], key.shape[-2])
        return depth, 4 * first.numel() * key.shape[-2]
    if name in ACCUMULATES:
        total = max((_numel(_meta(a)) for a in node.all_input_nodes), default=0)
        kept = max(out, 1)
        if name in ("_softmax", "_log_softmax", "cumsum", "cumprod"):
            dim = int(node.args[1])  # type: ignore[call-overload]
            return (first.shape[dim] if first.dim() else 1), 4 * total
        if name == "native_layer_norm":
            return math.prod(node.args[1]), 6 * total  # type: ignore[arg-type]
        if "batch_norm" in name:
            return max(total // max(first.shape[1], 1), 1), 6 * total
        if name == "native_group_norm":
            groups = int(node.args[6])  # type: ignore[call-overload]
            return max(total // max(first.shape[0] * groups, 1), 1), 6 * total
        if "pool" in name and name.startswith("avg"):
            return math.prod(node.args[1]), total  # type: ignore[arg-type]
        return max(total // kept, 1), total
    if name in MOVES:
        return 1, 0
    return 1, out


def _recurrent(node: torch.fx.Node) -> tuple[int, int]:
    weights = [
        meta
        for arg in node.args
        if isinstance(arg, (list, tuple))
        for meta in map(_meta, arg)
        if isinstance(meta, torch.Tensor) and meta.dim() == 2
    ]
    first = _meta(node.args[0])
    steps = first.shape[0] * first.shape[1]  # time and batch, in either order
    depth = max((w.shape[1] for w in weights), default=1)
    return depth, sum(2 * steps * w.numel() for w in weights)


def _flows(graph: ExportedGraph) -> dict[torch.fx.Node, tuple[bool, bool, bool]]:
    """For each node: (rounded before or in it, accumulated before or in it, jumps)."""
    state: dict[torch.fx.Node, tuple[bool, bool, bool]] = {}
    for node in graph.program.graph.nodes:
        before = [state[n] for n in node.all_input_nodes]
        rounded, product, jumps = (any(s[i] for s in before) for i in range(3))
        if node.op == "call_function":
            name = op_name(node)
            if str(node.target) == "<built-in function getitem>":
                source, index = node.args[0], node.args[1]
                which = JUMPS.get(op_name(source), -1)  # type: ignore[arg-type]
                jumps = jumps or (which == index and rounded)
            elif (fill := fill_of(node.target, node.args, node.kwargs)) is not None:
                # Drawn numbers are exact; probabilities that they are compared with need not be.
                jumps = fill.compared and (jumps or rounded)
                product, rounded = fill.compared and product, False
            else:
                to_integer = name == "_to_copy" and not _meta(node).is_floating_point()
                whole = name in JUMPS and JUMPS[name] is None
                jumps = jumps or (rounded and (whole or to_integer))
                product = product or name in ACCUMULATES
                rounded = rounded or name not in MOVES
        state[node] = (rounded, product, jumps)
    return state


def analyse(graph: ExportedGraph) -> Analysis:
    longest, flops = 1, 0
    for node in graph.program.graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        length, work = reduction_and_flops(node)
        longest, flops = max(longest, length), flops + work
    flows = _flows(graph)
    outputs = [
        OutputTraits(behind_product=flows[node][1], jumps=flows[node][2])
        for node in graph.node_of_output
    ]
    return Analysis(int(longest), int(flops), outputs)
