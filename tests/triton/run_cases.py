# SPDX-License-Identifier: Apache-2.0
"""Runs printed Triton functions on the processor, in Triton's interpreter.

Started as `run_cases.py FOLDER`, which holds module.py, cases.json ([{"function", "inputs":
[{"dtype", "shape", "strides"}…]}…]) and the inputs' bytes, CASE_INPUT.in; writes CASE_OUTPUT.out.
The interpreter lacks libdevice: here it is PyTorch's functions of the same names.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402
from triton.runtime.interpreter import TensorHandle  # noqa: E402

OWN_NAMES = {"rint": torch.round}
UNARY = """acos acosh asin asinh atan atanh cos cosh erf exp exp2 expm1 log log10 log1p log2 rint
rsqrt sin sinh tan tanh trunc""".split()
BINARY = "atan2 copysign fmod pow".split()


def played(function: Any) -> Any:
    def play(*blocks: Any) -> Any:
        like = next(b for b in blocks if isinstance(b, tl.tensor))
        kind = like.handle.data.dtype
        arrays = np.broadcast_arrays(
            *[b.handle.data if isinstance(b, tl.tensor) else kind.type(b) for b in blocks]
        )
        if function is torch.fmod:  # whose vectors lose denormals
            result = np.fmod(*arrays)
        else:
            result = function(*[torch.from_numpy(np.array(a, kind)) for a in arrays]).numpy()
        element = like.handle.dtype
        shape = list(result.shape)
        type_ = tl.block_type(element, shape) if isinstance(like.type, tl.block_type) else element
        return tl.tensor(TensorHandle(np.asarray(result, kind), element), type_)

    return play


def read(folder: str, case: int, number: int, spec: dict[str, Any]) -> torch.Tensor:
    kind = torch.bool if spec["dtype"] == "boolean" else getattr(torch, spec["dtype"])
    with open(os.path.join(folder, f"{case}_{number}.in"), "rb") as file:
        data = file.read()
    flat = torch.frombuffer(bytearray(data), dtype=kind) if data else torch.empty(0, dtype=kind)
    return flat.as_strided(spec["shape"], spec["strides"])


def main() -> None:
    folder = sys.argv[1]
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    for name in (*UNARY, *BINARY):
        setattr(libdevice, name, played(OWN_NAMES.get(name) or getattr(torch, name)))
    sys.path.insert(0, folder)
    import module

    with open(os.path.join(folder, "cases.json")) as file:
        cases = json.load(file)
    for number, case in enumerate(cases):
        inputs = [read(folder, number, i, spec) for i, spec in enumerate(case["inputs"])]
        try:
            results = getattr(module, case["function"])(*(inputs or [torch.empty(0)]))
        except Exception:  # noqa: BLE001  the test names the case and shows this
            with open(os.path.join(folder, f"{number}.failed"), "w") as file:
                file.write(traceback.format_exc())
            continue
        for i, result in enumerate(results):
            with open(os.path.join(folder, f"{number}_{i}.out"), "wb") as file:
                file.write(result.contiguous().view(-1).view(torch.uint8).numpy().tobytes())


if __name__ == "__main__":
    main()
