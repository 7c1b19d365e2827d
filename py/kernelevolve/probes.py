# SPDX-License-Identifier: Apache-2.0
"""Input sets beyond get_inputs(): scaled, planted, tied values, a common low mantissa tail, and
special values.

A probe keeps the kind of its tensor: what is nowhere negative stays so, values from a small set of
whole numbers (labels, masks) and non-finite values stay as drawn. `gentle` probes also stay inside
the range that was drawn, for operations whose domain is bounded.
"""

from __future__ import annotations

import math

import torch

KINDS = ("nominal", "scaled", "planted", "tied", "mantissa_tail", "special")
LABEL_VALUES_MAX = 4
TAIL_BITS = {torch.float64: 26, torch.float32: 12, torch.float16: 10, torch.bfloat16: 7}


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _is_label(tensor: torch.Tensor) -> bool:
    """Few distinct whole numbers: classes or masks that happen to be stored as floats."""
    sample = tensor.flatten()[:4096]
    if not bool((sample == sample.round()).all()):
        return False
    return sample.unique().numel() <= LABEL_VALUES_MAX


def _scaled(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    low, high = (-4, 0) if gentle else (-3, 4)
    power = int(torch.randint(low, high + 1, (), generator=random))
    return x * 2.0**power


def _planted(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    count = max(1, min(8, x.numel() // 64))
    flat = x.contiguous().flatten().clone()
    where = torch.randint(0, x.numel(), (count,), generator=random)
    if gentle:
        values = torch.where(torch.rand(count, generator=random) < 0.5, x.min(), x.max())
    else:
        power = torch.randint(3, 6, (count,), generator=random)
        sign = torch.where(torch.rand(count, generator=random) < 0.5, -1.0, 1.0)
        values = x.abs().max().double() * 2.0**power * sign
    flat[where] = values.to(x.dtype)
    return flat.reshape(x.shape)


def _tied(x: torch.Tensor) -> torch.Tensor:
    """A few levels only, so that ties are frequent; the step is a power of two."""
    largest = float(x.abs().max())
    if largest == 0:
        return x.clone()
    step = 2.0 ** (torch.tensor(largest).log2().floor().item() - 2)
    return ((x / step).round() * step).clamp(x.min(), x.max())


def _tail(x: torch.Tensor) -> torch.Tensor:
    """sign(x) 2^floor(log2 |x|) (1 + 2^-bits): rounding of operands cannot average out."""
    _, exponent = torch.frexp(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x)
    power = torch.ldexp(torch.ones((), dtype=torch.float64), exponent - 1)
    value = (power * (1 + 2.0 ** -TAIL_BITS[x.dtype])).to(x.dtype)
    return torch.where(x == 0, x, torch.copysign(value, x))


def _special(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    """NaN, infinities, a large magnitude, zeros of both signs and denormals at random places.

    Few of each, so that most results stay finite; the large ones share a sign, so that sums do not
    cancel to what no order of summation can compute. A gentle probe plants only small values.
    """
    info = torch.finfo(x.dtype)
    large = 2.0 ** min(40, int(math.log2(info.max)) - 4)
    sign = 1.0 if bool(torch.rand((), generator=random) < 0.5) else -1.0
    values = [0.0, -0.0, info.smallest_normal / 4, -info.smallest_normal / 4, info.tiny]
    if not gentle:
        values += [math.nan, math.inf, -math.inf, sign * large]
    if gentle and not float(x.min()) <= 0 <= float(x.max()):
        return x
    flat = x.contiguous().flatten().clone()
    where = torch.randint(0, x.numel(), (len(values),), generator=random)
    flat[where] = torch.tensor(values, dtype=torch.float64).to(x.dtype)
    return flat.reshape(x.shape)


def _loosen(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Makes a constant tensor (ones, zeros: fresh weights) vary, so that its use can be seen."""
    noise = torch.rand(x.shape, generator=random, dtype=torch.float32).to(x.dtype)
    value = float(x.flatten()[0])
    return x * (1 + noise / 4) if value != 0 else (noise - 0.5) / 4


def probe(tensor: torch.Tensor, kind: str, seed: int, is_state: bool, gentle: bool) -> torch.Tensor:
    """A tensor like `tensor` with the values of a probe."""
    if kind == "nominal" or not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    finite = torch.isfinite(tensor)
    if not bool(finite.all()):
        return tensor
    random = _random(seed)
    x = tensor
    if is_state and tensor.numel() > 0 and bool((x == x.flatten()[0]).all()):
        x = _loosen(x, random)
    elif not is_state and _is_label(x):
        return tensor
    if kind == "scaled":
        x = _scaled(x, random, gentle or is_state)
    elif kind == "planted" and not is_state:
        x = _planted(x, random, gentle)
    elif kind == "tied":
        x = _tied(x)
    elif kind == "mantissa_tail":
        x = _tail(x)
    elif kind == "special" and not is_state:
        x = _special(x, random, gentle)
    if float(tensor.min()) >= 0:
        x = x.abs()
    return x
