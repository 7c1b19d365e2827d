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


def random_on(device: torch.device, seed: int) -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def _integers(
    low: int, high: int, shape: tuple[int, ...], random: torch.Generator
) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=random, device=random.device)


def _uniform(
    shape: tuple[int, ...], random: torch.Generator, dtype: torch.dtype | None = None
) -> torch.Tensor:
    return torch.rand(shape, generator=random, dtype=dtype, device=random.device)


def _place(x: torch.Tensor, where: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A copy of `x` with a few values placed; where places meet, the last one stays."""
    flat = x.contiguous().flatten().clone()
    for index, value in zip(where.tolist(), values.to(x.dtype), strict=True):
        flat[index] = value
    return flat.reshape(x.shape)


def _is_label(tensor: torch.Tensor) -> bool:
    """Few distinct whole numbers: classes or masks that happen to be stored as floats."""
    sample = tensor.flatten()[:4096]
    if not bool((sample == sample.round()).all()):
        return False
    return sample.unique().numel() <= LABEL_VALUES_MAX


def _scaled(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    low, high = (-4, 0) if gentle else (-3, 4)
    power = int(_integers(low, high + 1, (), random))
    return x * 2.0**power


def _planted(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    count = max(1, min(8, x.numel() // 64))
    where = _integers(0, x.numel(), (count,), random)
    if gentle:
        values = torch.where(_uniform((count,), random) < 0.5, x.min(), x.max())
    else:
        power = _integers(3, 6, (count,), random)
        sign = torch.where(_uniform((count,), random) < 0.5, -1.0, 1.0)
        values = x.abs().max().double() * 2.0**power * sign
    return _place(x, where, values)


def _tied(x: torch.Tensor) -> torch.Tensor:
    """A few levels only, so that ties are frequent; the step is a power of two."""
    largest = float(x.abs().max())
    if largest == 0:
        return x.clone()
    step = 2.0 ** (torch.tensor(largest).log2().floor().item() - 2)
    return ((x / step).round() * step).clamp(x.min(), x.max())


def _tail(x: torch.Tensor) -> torch.Tensor:
    """sign(x) 2^floor(log2 |x|) (1 + 2^-bits): rounding of operands cannot average out."""
    mantissa, _ = torch.frexp(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x)
    power = (x.double() / mantissa.double()).abs() / 2  # exactly, unlike a device's power of two
    value = (power * (1 + 2.0 ** -TAIL_BITS[x.dtype])).to(x.dtype)
    return torch.where(x == 0, x, torch.copysign(value, x))


def _special(x: torch.Tensor, random: torch.Generator, gentle: bool) -> torch.Tensor:
    """NaN, infinities, a large magnitude, zeros of both signs and denormals at random places.

    Few of each, so that most results stay finite; the large ones share a sign, so that sums do not
    cancel to what no order of summation can compute. A gentle probe plants only small values.
    """
    info = torch.finfo(x.dtype)
    large = 2.0 ** min(40, int(math.log2(info.max)) - 4)
    sign = 1.0 if bool(_uniform((), random) < 0.5) else -1.0
    values = [0.0, -0.0, info.smallest_normal / 4, -info.smallest_normal / 4, info.tiny]
    if not gentle:
        values += [math.nan, math.inf, -math.inf, sign * large]
    if gentle and not float(x.min()) <= 0 <= float(x.max()):
        return x
    where = _integers(0, x.numel(), (len(values),), random)
    return _place(x, where, torch.tensor(values, dtype=torch.float64, device=x.device))


def _loosen(x: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    """Makes a constant tensor (ones, zeros: fresh weights) vary, so that its use can be seen."""
    noise = _uniform(tuple(x.shape), random, torch.float32).to(x.dtype)
    value = float(x.flatten()[0])
    return x * (1 + noise / 4) if value != 0 else (noise - 0.5) / 4


def probe(tensor: torch.Tensor, kind: str, seed: int, is_state: bool, gentle: bool) -> torch.Tensor:
    """A tensor like `tensor` with the values of a probe."""
    if kind == "nominal" or not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    finite = torch.isfinite(tensor)
    if not bool(finite.all()):
        return tensor
    random = random_on(tensor.device, seed)
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
