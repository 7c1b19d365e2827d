# SPDX-License-Identifier: Apache-2.0
"""Generators of operations over images: convolutions, pools, attention (operations.py)."""

from __future__ import annotations

from collections.abc import Callable

from operations import Choice, Text


def images(c: Choice, name: str, places: int) -> tuple[str, list[int]]:
    """A live tensor as a batch of images over so many dimensions, and its shape."""
    shape = list(c.live[name].shape)
    if len(shape) == places + 2 and c.rng.random() < 0.7:
        return name, shape
    rest = c.live[name].numel()
    made = []
    for options in ((1, 2, 3), (1, 2, 3, 4, 6), *[(2, 3, 4, 5, 7)] * (places - 1)):
        extent = c.rng.choice([n for n in options if rest % n == 0] or [1])
        made.append(extent)
        rest //= extent
    made.append(rest)
    return f"{name}.reshape({made})", made


def literal(c: Choice, shape: list[int]) -> str:
    """Small numbers that every floating type holds."""
    count = 1
    for extent in shape:
        count *= extent
    if count > 300:
        raise ValueError("too long to write")
    values = [c.rng.choice((-1.5, -1, -0.5, 0, 0.25, 0.5, 1, 2)) for _ in range(count)]
    return f"torch.tensor({values}, dtype=FLOAT).reshape({shape})"


def some(c: Choice, places: int, options: tuple[int, ...]) -> list[int]:
    return [c.rng.choice(options) for _ in range(places)]


def convolution(c: Choice) -> Text:
    x = c.float()
    places = c.rng.choice((1, 2, 2, 3))
    image, shape = images(c, x, places)
    channels = shape[1]
    groups = c.rng.choice([g for g in (1, 1, 2, 3, channels) if g and channels % g == 0])
    outs = c.rng.choice((1, 2, 3, 5))
    transposed = c.rng.random() < 0.4
    ends = [channels, outs] if transposed else [groups * outs, channels // groups]
    weight = literal(c, ends + some(c, places, (1, 2, 3, 3, 4)))
    bias = literal(c, [groups * outs]) if c.rng.random() < 0.5 else "None"
    stride = some(c, places, (1, 1, 2, 3))
    options = f"stride={stride}, padding={some(c, places, (0, 1, 1, 2))}"
    options += f", dilation={some(c, places, (1, 1, 1, 2))}, groups={groups}"
    if transposed:
        options += f", output_padding={[c.rng.randrange(s) for s in stride]}"
    call = f"conv_transpose{places}d" if transposed else f"conv{places}d"
    return f"F.{call}({image}, {weight}, {bias}, {options})", False


def max_pool(c: Choice) -> Text:
    x = c.float()
    places = c.rng.choice((1, 2, 2, 3))
    image, _ = images(c, x, places)
    if c.rng.random() < 0.2:
        image = f"{image}[0]"
    options = f"{some(c, places, (1, 2, 3, 3, 4))}, {some(c, places, (1, 2, 2, 3))}"
    options += f", {some(c, places, (0, 0, 1, 2))}, {some(c, places, (1, 1, 1, 2))}"
    options += f", ceil_mode={c.pick('True', 'False')}"
    call = f"F.max_pool{places}d({image}, {options}"
    if c.is_exact(x) and c.rng.random() < 0.5:
        return f"{call}, return_indices=True)[1]", True
    return f"{call})", c.is_exact(x)


def mean_pool(c: Choice) -> Text:
    places = c.rng.choice((1, 2, 2, 3))
    image, shape = images(c, c.float(), places)
    if c.rng.random() < 0.2:
        image = f"{image}[0]"
    # PyTorch decomposes uneven shares into an operation a place.
    if max(shape[2:]) <= 16 and c.rng.random() < 0.6:
        sizes = [c.rng.choice((1, 2, 3, extent, extent + 1)) for extent in shape[2:]]
        return f"F.adaptive_avg_pool{places}d({image}, {sizes})", False
    options = f"{some(c, places, (1, 2, 3, 3, 4))}, {some(c, places, (1, 2, 2, 3))}"
    options += f", {some(c, places, (0, 0, 1, 2))}, {c.pick('True', 'False')}"
    options += f", {c.pick('True', 'False')}"
    if places > 1 and c.rng.random() < 0.3:
        options += f", {c.whole()}"
    return f"F.avg_pool{places}d({image}, {options})", False


def attention(c: Choice) -> Text:
    x = c.float()
    image, shape = images(c, x, 2)
    options = c.pick("", ", is_causal=True", ", scale=0.5")
    if c.rng.random() < 0.3:
        mask = literal(c, [1, shape[2]])
        options = f", {c.pick(mask, f'{mask}.masked_fill({mask} < 0, -torch.inf)')}"
    return f"F.scaled_dot_product_attention({image}, {image}.sin(), {image}{options})", False


GENERATORS: tuple[Callable[[Choice], Text], ...] = (
    convolution,
    convolution,
    convolution,
    max_pool,
    max_pool,
    mean_pool,
    mean_pool,
    attention,
)
