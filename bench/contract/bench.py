# SPDX-License-Identifier: Apache-2.0
"""Matrix products: printed kernels against PyTorch, interleaved in one process.

    bench.py --printer build/bench/contract/print_product [--case NAME] [--threads 2]
             [--reps 15] [--with tile_m=6,block_m=96]...   (variants of the schedule)

Every figure is a median; a ratio is PyTorch's time over the kernel's. --compile adds torch.compile.
"""

import argparse
import ctypes
import hashlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(tempfile.gettempdir()) / "ke-bench-contract"
FLAGS = (
    "-std=c++20 -O3 -march=native -fopenmp -fno-math-errno -fno-trapping-math -fwrapv "
    "-ffp-contract=fast -Wno-psabi -shared -fPIC"
).split()


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    ]


# name: (batch, m, k, n, left transposed, right transposed, float64, epilogue)
CASES = {
    "square2048": (0, 2048, 2048, 2048, 0, 0, 0, 0),
    "square1024": (0, 1024, 1024, 1024, 0, 0, 0, 0),
    "square512": (0, 512, 512, 512, 0, 0, 0, 0),
    "square256": (0, 256, 256, 256, 0, 0, 0, 0),
    "rect_nn": (0, 1024, 4096, 2048, 0, 0, 0, 0),
    "rect_tn": (0, 1024, 4096, 2048, 1, 0, 0, 0),
    "rect_nt": (0, 1024, 4096, 2048, 0, 1, 0, 0),
    "rect_tt": (0, 1024, 4096, 2048, 1, 1, 0, 0),
    "huge_k": (0, 256, 131072, 256, 0, 0, 0, 0),
    "small_k32": (0, 16384, 32, 16384, 0, 0, 0, 0),
    "small_k16": (0, 16384, 16, 16384, 0, 0, 0, 0),
    "wide_k16": (0, 4096, 16, 16384, 0, 0, 0, 0),
    "wide_k32": (0, 4096, 32, 16384, 0, 0, 0, 0),
    "odd": (0, 8205, 2949, 5921, 0, 0, 0, 0),
    "batched": (128, 128, 256, 512, 0, 0, 0, 0),
    "batched_small": (256, 32, 64, 48, 0, 1, 0, 0),
    "linear_leaky": (0, 128, 1024, 512, 0, 1, 0, 1),
    "linear_swish": (0, 128, 1024, 512, 0, 1, 0, 2),
    "linear_mish": (0, 128, 10, 20, 0, 1, 0, 3),
    "square1024_f64": (0, 1024, 1024, 1024, 0, 0, 1, 0),
}


def build(source: str, extra: list[str]) -> ctypes.CDLL:
    key = hashlib.sha256((source + " ".join(extra)).encode()).hexdigest()[:16]
    library = CACHE / f"{key}.so"
    if not library.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        text = CACHE / f"{key}.cpp"
        text.write_text(source)
        subprocess.run(
            ["g++", *FLAGS, f"-I{ROOT}/include", *extra, str(text), "-o", str(library), "-lm"],
            check=True,
        )
    return ctypes.CDLL(str(library))


def describe(tensor: torch.Tensor, keep: list) -> Tensor:
    shape = (ctypes.c_int64 * tensor.ndim)(*tensor.shape)
    strides = (ctypes.c_int64 * tensor.ndim)(*tensor.stride())
    keep.extend([shape, strides, tensor])
    return Tensor(
        tensor.data_ptr(),
        ctypes.addressof(shape),
        ctypes.addressof(strides),
        tensor.ndim,
        2,
        tensor.element_size() * 8,
        1,
    )


def aligned(shape: tuple, dtype: torch.dtype) -> torch.Tensor:
    size = torch.Size(shape).numel()
    raw = torch.empty(size + 128, dtype=dtype)
    skip = (-raw.data_ptr() % 64) // raw.element_size()
    return raw[skip : skip + size].view(shape)


def reference(epilogue: int, right_transposed: int):
    def product(x, w):
        return torch.matmul(x, w.mT if right_transposed else w)

    def plain(x, w, bias=None):
        return product(x, w)

    def leaky(x, w, bias):
        return F.leaky_relu(F.linear(x, w, bias) * 2.0, 0.1)

    def swish(x, w, bias):
        y = F.linear(x, w, bias)
        return y * torch.sigmoid(y) * 2.0

    def mish(x, w, bias):
        return F.mish(F.mish(F.linear(x, w, bias)))

    return [plain, leaky, swish, mish][epilogue]


def run(name: str, options) -> None:  # tidy: allow(function) because it is one story
    batch, m, k, n, lt, rt, f64, epilogue = CASES[name]
    words = [
        str(m),
        str(k),
        str(n),
        f"batch={batch}",
        f"left_transposed={lt}",
        f"right_transposed={rt}",
        f"float64={f64}",
        f"epilogue={epilogue}",
        f"threads_max={options.threads}",
    ]
    variants = [v.split(",") if v else [] for v in (options.variants or [""])]
    kernels = []
    for variant in variants:
        printed = subprocess.run(
            [options.printer, *words, *variant], capture_output=True, text=True
        )
        if printed.returncode:
            sys.exit(f"{name} {variant}: {printed.stderr}")
        if not options.build_only:
            print("  ", ",".join(variant), printed.stderr.strip())
        kernels.append(build(printed.stdout, []))
    driver = build((ROOT / "bench/contract/driver.cpp").read_text(), ["-pthread"])
    if options.build_only:
        return
    driver.bench_kernel.restype = ctypes.c_int64
    dtype = torch.float64 if f64 else torch.float32
    torch.manual_seed(1)
    prefix = (batch,) if batch else ()
    x_stored = torch.randn(*prefix, *((k, m) if lt else (m, k)), dtype=dtype)
    w = torch.randn(*prefix, *((n, k) if rt else (k, n)), dtype=dtype)
    x = x_stored.mT if lt else x_stored
    inputs = [x_stored, w] + ([torch.randn(n, dtype=dtype)] if epilogue else [])
    eager = reference(epilogue, rt)
    arguments = [x, w, *inputs[2:]]
    out = aligned((*prefix, m, n), dtype)
    keep: list = []
    ins = (Tensor * len(inputs))(*[describe(t, keep) for t in inputs])
    outs = (Tensor * 1)(describe(out, keep))

    def call(kernel: ctypes.CDLL, calls: int) -> float:
        kernel.ke_scratch_bytes.restype = ctypes.c_int64
        bytes_needed = kernel.ke_scratch_bytes()
        if not keep_scratch or keep_scratch[0].numel() < bytes_needed:
            keep_scratch[:] = [aligned((bytes_needed,), torch.uint8)]
        return (
            driver.bench_kernel(
                ctypes.cast(kernel.ke_launch, ctypes.c_void_p),
                ins,
                len(inputs),
                outs,
                1,
                ctypes.c_void_p(keep_scratch[0].data_ptr()),
                ctypes.c_int64(bytes_needed),
                options.running,
                ctypes.c_int64(calls),
            )
            / calls
        )

    keep_scratch: list = []
    truth = eager(*arguments)
    for kernel, variant in zip(kernels, variants):
        out.fill_(float("nan"))
        if call(kernel, 1) < 0:
            sys.exit(f"{name}: the kernel refused its arguments")
        error = ((out - truth).abs().max() / truth.pow(2).mean().sqrt()).item()
        if not error < 2e-4:
            print(f"   WRONG {variant}: {error}")
    contenders = {"eager": eager}
    if options.compile:
        contenders["compile"] = torch.compile(eager)
    flops = 2 * max(batch, 1) * m * k * n
    calls = max(1, int(2e-3 * 1e11 / max(flops, 1)))
    clock = time.perf_counter_ns if options.running > 1 else time.thread_time_ns
    times: list[list[float]] = [[] for _ in kernels]
    others: dict[str, list[float]] = {key: [] for key in contenders}
    for function in contenders.values():
        function(*arguments)
    calls = min(calls, 200)
    guard = None
    if options.under:  # returns once the guard runs
        guard = subprocess.Popen(
            [*options.under.split(), "sh", "-c", f"echo ready; sleep {options.seconds + 1}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        guard.stdout.readline()
    deadline = time.monotonic() + options.seconds
    for _ in range(options.reps):
        if time.monotonic() > deadline and times[0]:
            break
        time.sleep(0.01)  # PyTorch's threads spin for a while after a section
        for i, kernel in enumerate(kernels):
            call(kernel, 1)
            times[i].append(call(kernel, calls))
        for key, function in contenders.items():
            begin = clock()
            for _ in range(calls):
                function(*arguments)
            others[key].append((clock() - begin) / calls)
    if guard:
        guard.terminate()
        guard.wait()
    med = statistics.median
    line = f"{name:16s}"
    for key in contenders:
        line += f" {key} {med(others[key]) / 1e3:10.1f} us {flops / med(others[key]):6.1f} GF"
    print(line)
    for i, variant in enumerate(variants):
        t = med(times[i])
        ratios = " ".join(
            f"{key} x{med(others[key]) / t:.2f} (min x{min(others[key]) / min(times[i]):.2f})"
            for key in contenders
        )
        print(
            f"    kernel {t / 1e3:10.1f} us {flops / t:6.1f} GF "
            f"(best {flops / min(times[i]):6.1f})  {ratios}  {','.join(variant)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--printer", required=True)
    parser.add_argument("--case", action="append")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--serial",
        action="store_true",
        help="run the kernel for --threads on one, in processor time (busy machines)",
    )
    parser.add_argument("--reps", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument(
        "--under",
        help="a command that keeps other work still while its own "
        "argument command runs; held around the timing",
    )
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--with", dest="variants", action="append")
    options = parser.parse_args()
    options.running = 1 if options.serial else options.threads
    torch.set_num_threads(options.running)
    os.chdir(ROOT)
    for name in options.case or CASES:
        run(name, options)


if __name__ == "__main__":
    main()
