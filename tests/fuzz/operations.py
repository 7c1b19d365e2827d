# SPDX-License-Identifier: Apache-2.0
"""What random_modules.py draws from: each generator writes one expression over live tensors.

A generator returns the expression and whether its value is exact: free of rounding, and the same in
float64. It may write something that PyTorch refuses; the caller drops that.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import torch


class Choice:
    """Draws operands and constants for one expression."""

    def __init__(
        self,
        rng: random.Random,
        live: dict[str, torch.Tensor],
        exact: set[str],
        single: torch.dtype,
    ) -> None:
        self.rng, self.live, self.exact, self.single = rng, live, exact, single

    def any(self, accept: Callable[[torch.Tensor], bool] = lambda t: True) -> str:
        names = [name for name, tensor in self.live.items() if accept(tensor)]
        recent = names[-3:] if self.rng.random() < 0.6 else names
        return self.rng.choice(recent)  # IndexError when there is none: the caller drops it

    def float(self) -> str:
        return self.any(lambda t: t.dtype.is_floating_point)

    def integer(self) -> str:
        return self.any(lambda t: not t.dtype.is_floating_point and t.dtype != torch.bool)

    def exact_one(self) -> str:
        name = self.any()
        if name not in self.exact:
            raise ValueError("not exact")
        return name

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def dim(self, name: str) -> int:
        rank = self.live[name].dim()
        return self.rng.randrange(-rank, rank) if rank else 0

    def dims(self, name: str) -> list[int]:
        rank = self.live[name].dim()
        return sorted(self.rng.sample(range(rank), self.rng.randint(1, rank)))

    def number(self) -> str:
        return self.pick("0.5", "2.0", "-1.5", "0.1", "3", "-2", "1", "0.7071", "7")

    def whole(self) -> int:
        return self.rng.choice((-3, -1, 1, 2, 3, 5))

    def is_exact(self, *names: str) -> bool:
        return all(name in self.exact for name in names)


Text = tuple[str, bool]


def unary_float(c: Choice) -> Text:
    op = c.pick(
        "exp",
        "expm1",
        "sin",
        "cos",
        "tan",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "erf",
        "exp2",
        "sigmoid",
        "reciprocal",
        "square",
        "log",
        "sqrt",
        "rsqrt",
        "log1p",
        "log2",
        "log10",
        "acosh",
    )
    return f"torch.{op}({c.any()})", False


def unary_bounded(c: Choice) -> Text:
    op = c.pick("asin", "acos", "atanh", "log", "log2", "log10", "log1p", "sqrt", "rsqrt")
    x = c.float()
    inner = f"torch.tanh({x})" if op.startswith("a") else f"({x}.abs() + 0.25)"
    return f"torch.{op}({inner})", False


def unary_exact(c: Choice) -> Text:
    x = c.any()
    return f"torch.{c.pick('neg', 'abs', 'relu', 'abs')}({x})", c.is_exact(x)


def unary_jump(c: Choice) -> Text:
    op = c.pick(
        "floor", "ceil", "trunc", "round", "sign", "isnan", "isinf", "isfinite", "logical_not"
    )
    return f"torch.{op}({c.exact_one()})", True


def unary_bits(c: Choice) -> Text:
    x = c.any(lambda t: not t.dtype.is_floating_point)
    return c.pick(f"torch.bitwise_not({x})", f"~{x}"), True


def activation(c: Choice) -> Text:
    x = c.float()
    call = c.pick(
        "silu({})",
        "gelu({})",
        "gelu({}, approximate='tanh')",
        "elu({}, 0.7)",
        "selu({})",
        "celu({}, 1.3)",
        "leaky_relu({}, 0.2)",
        "hardtanh({}, -0.5, 0.75)",
        "hardswish({})",
        "hardsigmoid({})",
        "softplus({})",
        "softplus({}, 2.0, 5.0)",
        "softsign({})",
        "relu6({})",
        "mish({})",
        "logsigmoid({})",
        "tanhshrink({})",
        "relu({})",
    )
    return f"F.{call.format(x)}", False


def arithmetic(c: Choice) -> Text:
    a, b = c.any(), c.any()
    return c.pick(
        f"{a} + {b}",
        f"{a} - {b}",
        f"{a} * {b}",
        f"{a} / ({b}.abs() + 1)",
        f"torch.maximum({a}, {b})",
        f"torch.minimum({a}, {b})",
        f"torch.add({a}, {b}, alpha={c.whole()})",
        f"torch.sub({a}, {b}, alpha={c.whole()})",
        f"torch.rsub({a}, {b})",
        f"torch.atan2({a}, {b})",
        f"torch.copysign({a}, {b})",
        f"torch.fmax({a}, {b})",
        f"torch.logaddexp({a}, {b})",
    ), False


def with_scalar(c: Choice) -> Text:
    a, k = c.any(), c.number()
    return c.pick(
        f"{a} + {k}",
        f"{k} - {a}",
        f"{a} * {k}",
        f"{a} / {k}",
        f"{k} / ({a}.abs() + 1)",
        f"torch.add({a}, {k}, alpha=2)",
        f"torch.clamp({a}, -{k.lstrip('-')}, {k.lstrip('-')})",
        f"torch.clamp({a}, min={k})",
        f"torch.clamp({a}, max={k})",
    ), False


def exact_integers(c: Choice) -> Text:
    a, b = c.integer(), c.any(lambda t: not t.dtype.is_floating_point)
    k = c.whole()
    return c.pick(
        f"{a} + {b}",
        f"{a} - {b} * 2",
        f"{a} * {b}",
        f"{a} + {k}",
        f"{a} * {k}",
        f"{k} - {a}",
        f"torch.div({a}, {k}, rounding_mode='floor')",
        f"torch.div({a}, {k}, rounding_mode='trunc')",
        f"{a} % {k}",
        f"torch.fmod({a}, {k})",
        f"{a} // {k}",
        f"{a} ** {abs(k)}",
        f"torch.remainder({a}, {b}.abs() + 1)",
        f"({a} & {b})",
        f"({a} | {b})",
        f"({a} ^ {b})",
        f"({a} << {abs(k)})",
        f"({a} >> {abs(k)})",
        f"torch.maximum({a}, {b})",
        f"torch.clamp({a}, -2, 3)",
        f"({a} & {abs(k)})",
    ), True


def remainders(c: Choice) -> Text:
    a, k = c.exact_one(), c.pick("2", "-3", "0.5", "1.5", "-0.75")
    return c.pick(
        f"torch.fmod({a}, {k})",
        f"torch.remainder({a}, {k})",
        f"torch.div({a}, {k}, rounding_mode='floor')",
        f"torch.div({a}, {k}, rounding_mode='trunc')",
    ), False


def power(c: Choice) -> Text:
    a = c.float()
    exponent = c.pick("2", "3", "0.5", "-0.5", "-1", "-2", "0", "1", "1.7", "4", "2.0", "3.0")
    return c.pick(
        f"({a}.abs() + 0.5) ** {exponent}",
        f"torch.pow({a}, {c.pick('2', '3', '2.0', '1', '0')})",
        f"torch.pow({c.pick('2', '1.5', '1')}, torch.tanh({a}))",
        f"torch.pow({a}.abs() + 0.5, torch.tanh({c.float()}))",
    ), False


def compare(c: Choice) -> Text:
    op = c.pick("==", "!=", "<", "<=", ">", ">=")
    a = c.exact_one()
    b = c.exact_one() if c.rng.random() < 0.6 else c.pick("0", "1", "0.5", "-2", "True")
    return f"({a} {op} {b})", True


def logic(c: Choice) -> Text:
    a, b = c.exact_one(), c.exact_one()
    return f"torch.logical_{c.pick('and', 'or', 'xor')}({a}, {b})", True


def where(c: Choice) -> Text:
    condition = c.any(lambda t: t.dtype == torch.bool)
    a, b = c.any(), c.any()
    k = c.pick("0.0", "1", "-2.5", "float('-inf')")
    with_constant = c.rng.random() < 0.5
    if with_constant:
        return c.pick(
            f"torch.where({condition}, {a}, {k})", f"{a}.masked_fill({condition}, {k})"
        ), (c.is_exact(a))
    return f"torch.where({condition}, {a}, {b})", c.is_exact(a, b)


def three(c: Choice) -> Text:
    a, b, d = c.float(), c.float(), c.float()
    return c.pick(
        f"torch.addcmul({a}, {b}, {d}, value=0.5)",
        f"torch.addcdiv({a}, {b}, {d}.abs() + 1, value=-2)",
        f"torch.lerp({a}, {b}, 0.3)",
        f"torch.clamp({a}, {b}, {d})",
        f"torch.lerp({a}, {b}, {d})",
    ), False


def cast(c: Choice) -> Text:
    x = c.any()
    wide = not c.live[x].dtype.is_floating_point
    if wide or x not in c.exact:
        return f"{x}.to(FLOAT)", c.is_exact(x) and c.single in (torch.float32, torch.float64)
    return c.pick(
        f"{x}.nan_to_num(0).clamp(-9, 9).to(torch.int64)",
        f"{x}.bool()",
        f"{x}.to(FLOAT)",
        f"{x}.nan_to_num(0).clamp(-9, 9).int()",
    ), True


def reduction(c: Choice) -> Text:
    x = c.any()
    op = c.pick("sum", "mean", "sum", "mean", "var", "std", "logsumexp", "amax", "amin")
    keep = c.pick("True", "False")
    exact = c.is_exact(x) and op in ("amax", "amin")
    exact |= op == "sum" and not c.live[x].dtype.is_floating_point
    if op in ("sum", "mean", "var", "std") and c.rng.random() < 0.3:
        return f"{x}.{op}()", exact
    if op in ("var", "std") and c.rng.random() < 0.5:
        return (
            f"{x}.{op}(dim={c.dims(x)}, correction={c.pick('0', '1', '2')}, keepdim={keep})",
            False,
        )
    return f"{x}.{op}(dim={c.dims(x)}, keepdim={keep})", exact


def position(c: Choice) -> Text:
    x = c.exact_one()
    d, keep = c.dim(x), c.pick("True", "False")
    return c.pick(
        f"{x}.argmax({d}, keepdim={keep})",
        f"{x}.argmin({d}, keepdim={keep})",
        f"{x}.argmax()",
        f"{x}.max({d}, keepdim={keep})[1]",
        f"{x}.min({d}, keepdim={keep})[1]",
        f"{x}.max({d})[0]",
        f"{x}.min({d}, keepdim={keep})[0]",
        f"{x}.max()",
        f"{x}.min()",
    ), True


def quantified(c: Choice) -> Text:
    x = c.exact_one()
    op = c.pick("any", "all")
    dim = c.pick("", f"{c.dim(x)}", f"{c.dim(x)}, keepdim=True")
    return c.pick(f"{x}.{op}({dim})", f"torch.count_nonzero({x})", f"({x} != 0).{op}({dim})"), True


def product(c: Choice) -> Text:
    x, op = c.any(), c.pick("cumsum", "cumprod")
    d = c.dim(x)
    return c.pick(
        f"{x}.prod({d}, keepdim={c.pick('True', 'False')})",
        f"{x}.prod()",
        f"({x} * ({x} > 0)).{op}({d})",
        f"{x}.flip({d}).{op}({d}).flip({d}) + 1",
    ), not c.live[x].dtype.is_floating_point


def norm(c: Choice) -> Text:
    x = c.float()
    order = c.pick("2", "1", "float('inf')", "float('-inf')", "3", "0.5", "2.0")
    return c.pick(
        f"torch.linalg.vector_norm({x}, {order}, dim={c.dims(x)}, keepdim=True)",
        f"torch.linalg.vector_norm({x}, {order})",
        f"{x}.norm(dim={c.dim(x)}, keepdim=True)",
        f"F.normalize({x}, dim={c.dim(x)})",
    ), False


def softmax(c: Choice) -> Text:
    x = c.float()
    return f"F.{c.pick('softmax', 'log_softmax', 'softmin')}({x}, dim={c.dim(x)})", False


def normalisation(c: Choice) -> Text:
    x = c.float()
    shape = list(c.live[x].shape)
    inner = shape[c.rng.randrange(len(shape)) :]
    groups = c.pick("1", "2", "3")
    scale = ""
    vectors = [
        n for n, t in c.live.items() if list(t.shape) == inner and t.dtype == c.live[x].dtype
    ]
    if vectors and c.rng.random() < 0.7:
        scale = f", {c.rng.choice(vectors)}, {c.rng.choice(vectors)}"
    return c.pick(
        f"F.layer_norm({x}, {inner}{scale})",
        f"F.rms_norm({x}, {inner})",
        f"F.rms_norm({x}, {inner}{scale.split(', ')[1] and ', ' + scale.split(', ')[1]}, 1e-5)"
        if scale
        else f"F.layer_norm({x}, {inner}, eps=1e-3)",
        f"F.group_norm({x}, {groups})",
        f"F.batch_norm({x}, None, None, training=True)",
        f"F.instance_norm({x})",
        f"F.layer_norm({x}, {inner}{scale})",
    ), False


def matmul(c: Choice) -> Text:
    a, b = c.any(), c.any()
    if c.rng.random() < 0.5:
        b = f"{b}.mT"
    return c.pick(f"{a} @ {b}", f"torch.matmul({a}, {b})", f"F.linear({a}, {c.any()})"), False


def own_matmul(c: Choice) -> Text:
    """A product that always fits, made of one tensor and its transpose."""
    a = c.any(lambda t: t.dim() >= 2 and t.dtype != torch.bool)
    scaled = c.pick("", " * 0.5")
    return c.pick(f"({a}{scaled}) @ {a}.mT", f"{a}.mT @ {a}"), not (
        c.live[a].dtype.is_floating_point or scaled
    )


def added_matmul(c: Choice) -> Text:
    a, b = c.float(), c.float()
    options = f"beta={c.pick('1', '0.5', '0', '2')}, alpha={c.pick('1', '-1.5')}"
    return c.pick(
        f"torch.addmm({c.float()}, {a}, {b}.mT, {options})",
        f"torch.baddbmm({c.float()}, {a}, {b}.mT, {options})",
        f"F.linear({a}, {b}, {c.float()})",
        f"torch.addmm({a}.mT @ {a}, {a}.mT, {a}, {options})",
        f"torch.mv({a}, {b})",
        f"torch.dot({a}, {b})",
        f"torch.outer({a}, {b})",
        f"torch.addmv({a}, {b}, {c.float()})",
        f"torch.einsum('...ij,...kj->...ik', {a}, {b})",
    ), False


def reshape(c: Choice) -> Text:
    x = c.any()
    shape = list(c.live[x].shape)
    count = c.live[x].numel()
    factor = c.rng.choice([f for f in (1, 2, 3, 4, 5, 7, 8) if count % f == 0] if count else [1])
    return c.pick(
        f"{x}.reshape(-1)",
        f"{x}.reshape({factor}, {count // factor})",
        f"{x}.reshape({count // factor}, {factor})",
        f"{x}.flatten()",
        f"{x}.unsqueeze({c.dim(x)})",
        f"{x}.squeeze()",
        f"{x}.reshape({shape[::-1]})",
        f"{x}.flatten({c.dim(x)})",
        f"{x}.reshape({[1, *shape, 1]})",
    ), c.is_exact(x)


def permute(c: Choice) -> Text:
    x = c.any()
    order = list(range(c.live[x].dim()))
    c.rng.shuffle(order)
    return c.pick(
        f"{x}.permute({order})",
        f"{x}.transpose({c.dim(x)}, {c.dim(x)})",
        f"{x}.mT",
        f"{x}.t()",
        f"{x}.permute({order}).contiguous()",
        f"{x}.movedim({c.dim(x)}, {c.dim(x)})",
    ), c.is_exact(x)


def part(c: Choice) -> Text:
    x = c.any()
    d = c.dim(x)
    extent = c.live[x].shape[d]
    start, stop = c.rng.randint(-extent, extent), c.rng.randint(-extent, extent + 2)
    head = ":, " * (d % c.live[x].dim())
    return c.pick(
        f"{x}[{head}{start}:{stop}:{c.pick('1', '1', '2', '3')}]",
        f"{x}[{head}{c.rng.randrange(-extent, extent) if extent else 0}]",
        f"{x}.narrow({d}, {max(start, 0)}, {max(extent - max(start, 0), 0)})",
        f"{x}.chunk({c.pick('2', '3')}, {d})[{c.pick('0', '1', '-1')}]",
        f"{x}.split({max(extent // 2, 1)}, {d})[{c.pick('0', '1', '-1')}]",
        f"{x}.unbind({d})[{c.pick('0', '-1')}]",
        f"{x}.unfold({d}, {c.pick('1', '2', '3')}, {c.pick('1', '2')})",
    ), c.is_exact(x)


def rearranged(c: Choice) -> Text:
    x = c.any()
    rank = c.live[x].dim()
    amounts = [c.rng.randint(-1, 2) for _ in range(2 * c.rng.randint(1, max(rank, 1)))]
    repeats = [c.rng.randint(1, 2) for _ in range(rank + c.rng.randint(0, 1))]
    return c.pick(
        f"{x}.flip({c.dims(x)})",
        f"F.pad({x}, {amounts}, value={c.pick('0', '1', '-2')})",
        f"{x}.repeat({repeats})",
        f"{x}.roll({c.whole()}, {c.dim(x)})",
        f"{x}.tril({c.whole()})",
        f"{x}.triu()",
        f"{x}.expand({[2, *c.live[x].shape]})",
        f"{x}.clone()",
        f"{x}.diagonal()",
        f"{x}.repeat_interleave(2, {c.dim(x)})",
    ), c.is_exact(x)


def concat(c: Choice) -> Text:
    a, b, d = c.any(), c.any(), c.any()
    dim = c.dim(a)
    return c.pick(
        f"torch.cat([{a}, {b}], {dim})",
        f"torch.cat([{a}, {a}, {b}], {dim})",
        f"torch.stack([{a}, {b}], {dim})",
        f"torch.cat([{a}, {b}, {d}], {dim})",
        f"torch.cat([{a}, {a}[..., :1]], -1)",
        f"torch.stack([{a}, {a} * 2], -1)",
    ), c.is_exact(a, b, d)


def created(c: Choice) -> Text:
    x = c.any()
    n = c.live[x].shape[-1]
    return c.pick(
        f"{x} + torch.arange({n})",
        f"{x} * torch.arange(0.5, {n}, 1.0, dtype=FLOAT)[:{n}]",
        f"torch.ones_like({x}) - {x}",
        f"torch.full_like({x}, 3) + {x}",
        f"torch.zeros_like({x})",
        f"torch.eye({min(n, 8)})",
        f"torch.arange({n}) > 2",
        f"{x} + torch.tensor([1.5])",
        f"{x} * torch.tensor({[i % 5 - 2 for i in range(n)]}, dtype=FLOAT)",
    ), False


def loss(c: Choice) -> Text:
    a, b = c.float(), c.float()
    how = c.pick("mean", "sum", "none")
    return c.pick(
        f"F.mse_loss({a}, {b}, reduction='{how}')",
        f"F.l1_loss({a}, {b}, reduction='{how}')",
        f"F.smooth_l1_loss({a}, {b}, reduction='{how}')",
        f"F.huber_loss({a}, {b}, reduction='{how}')",
        f"F.kl_div({a}, F.softmax({b}, -1), reduction='{how}')",
        f"F.cosine_similarity({a}, {b}, dim={c.dim(a)})",
        f"F.binary_cross_entropy_with_logits({a}, torch.sigmoid({b}), reduction='{how}')",
        f"F.hinge_embedding_loss({a}, torch.ones_like({a}))",
        f"F.triplet_margin_loss({a}, {b}, {c.float()})",
    ), False


def class_loss(c: Choice) -> Text:
    x = c.any(lambda t: t.dim() == 2 and t.dtype.is_floating_point)
    rows, classes = c.live[x].shape
    labels = [c.rng.randrange(classes) for _ in range(rows)]
    how = c.pick("mean", "sum", "none")
    return c.pick(
        f"F.cross_entropy({x}, torch.tensor({labels}), reduction='{how}')",
        f"F.nll_loss({x}, torch.tensor({labels}), reduction='{how}')",
    ), False


def indexed(c: Choice) -> Text:
    x = c.any(lambda t: t.dim() >= 1 and t.numel() > 0)
    d = c.dim(x)
    extent = c.live[x].shape[d]
    index = [c.rng.randrange(extent) for _ in range(c.rng.randint(1, 5))]
    rows = c.live[x].shape[0]
    table = [[c.rng.randrange(rows) for _ in range(2)] for _ in range(3)]
    head = ":, " * (d % c.live[x].dim())
    return c.pick(
        f"{x}.index_select({d}, torch.tensor({index}))",
        f"{x}[{head}{index}]",
        f"F.embedding(torch.tensor({table}), {x})",
        f"{x}[torch.tensor({table})]",
        f"torch.take_along_dim({x}, {x}.argmax({d}, keepdim=True), {d})"
        if x in c.exact
        else f"{x}[{head}{[-i - 1 for i in index]}]",
    ), c.is_exact(x)


GENERATORS: tuple[Callable[[Choice], Text], ...] = (
    unary_float,
    unary_float,
    unary_bounded,
    unary_exact,
    unary_jump,
    unary_bits,
    activation,
    activation,
    arithmetic,
    arithmetic,
    arithmetic,
    with_scalar,
    with_scalar,
    exact_integers,
    exact_integers,
    remainders,
    power,
    compare,
    compare,
    logic,
    where,
    where,
    three,
    cast,
    reduction,
    reduction,
    reduction,
    position,
    quantified,
    product,
    product,
    norm,
    softmax,
    softmax,
    normalisation,
    normalisation,
    matmul,
    matmul,
    own_matmul,
    own_matmul,
    added_matmul,
    added_matmul,
    reshape,
    reshape,
    permute,
    permute,
    part,
    part,
    rearranged,
    rearranged,
    concat,
    concat,
    created,
    loss,
    class_loss,
    indexed,
    indexed,
)
