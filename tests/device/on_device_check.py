# SPDX-License-Identifier: Apache-2.0
"""What the oracle does on a real GPU: `on_device_check.py [TEST…]`, a line for each check.

The tests of device_oracle_test.py, with the device in the place of the processor, and what only a
device can show. Not a ctest: it needs PyTorch with CUDA and a driver. Exits 1 when a check fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("KE_SOURCE_DIR", str(HERE.parent.parent))
os.environ.setdefault("KE_TEST_DEVICE", "cuda:0")
os.environ.setdefault("KE_TEST_DRIVER", "libcuda.so.1")

import device_oracle_test  # noqa: E402
from device_oracle import DEVICE, PYTHON_FOLDER, DeviceOracle, Refused, torch  # noqa: E402

from binding import BoundModel  # noqa: E402
from problem import Options, load  # noqa: E402

HALF = """
import torch
class Model(torch.nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
def get_inputs():
    shape = (2, 4, 64, 32)
    return [torch.rand(*shape, device="cuda", dtype=torch.float16) for _ in range(3)]
def get_init_inputs():
    return []
"""
CONVOLUTION = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(64, 64, 3)
    def forward(self, x):
        return self.convolution(x)
def get_inputs():
    return [torch.randn(8, 64, 32, 32)]
def get_init_inputs():
    return []
"""
PRODUCT = """
import torch
class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
def get_inputs():
    return [torch.randn(512, 512), torch.randn(512, 512)]
def get_init_inputs():
    return []
"""
HUGE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.rand(4096, 393216)]
def get_init_inputs():
    return []
"""
TOO_LARGE = HUGE.replace("4096, 393216", "4096, 4096, 4096")
RECURRENT = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(64, 64, num_layers=3, batch_first=True)
    def forward(self, x):
        return self.lstm(x)[0]
def get_inputs():
    return [torch.randn(4, 20, 64)]
def get_init_inputs():
    return []
"""
FORKS = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch
import torch.export._trace
import baseline, description, device_requests, sets
import torch._inductor.compile_fx
links = [os.readlink(f"/proc/self/fd/{fd}") for fd in sorted(os.listdir("/proc/self/fd"))[:-1]
         if os.path.exists(f"/proc/self/fd/{fd}")]
assert not any("nvidia" in link for link in links), links
pid = os.fork()
if pid == 0:
    torch.zeros(1, device="cuda:0").add_(1)
    os._exit(0)
sys.exit(os.waitpid(pid, 0)[1] != 0)
"""


class OnlyOnDevice(unittest.TestCase):
    def open(self, source: str, **options: object) -> DeviceOracle:
        oracle = DeviceOracle(source, **options)
        self.addCleanup(oracle.__exit__)
        return oracle.load()

    def own_error(self, source: str, precision: str) -> float:
        oracle = self.open(source, precision=precision)
        return float(oracle.fill(oracle.make_slot())["truths"][0]["pytorch_rms"])

    def test_imports_leave_the_device_alone(self) -> None:
        command = [sys.executable, "-c", FORKS, PYTHON_FOLDER]
        self.assertEqual(subprocess.run(command, check=False).returncode, 0)

    def test_convolutions_take_tf32_unless_told(self) -> None:
        errors = {p: self.own_error(CONVOLUTION, p) for p in ("strict", "ieee", "tf32")}
        print(f"  rms errors of a convolution: {errors}")
        self.assertGreater(errors["strict"], 20 * errors["ieee"])
        self.assertGreater(errors["tf32"], 20 * errors["ieee"])

    def test_products_take_tf32_when_told(self) -> None:
        errors = {p: self.own_error(PRODUCT, p) for p in ("strict", "ieee", "tf32")}
        print(f"  rms errors of a product: {errors}")
        self.assertGreater(errors["tf32"], 20 * errors["strict"])
        self.assertLess(errors["strict"], 2 * errors["ieee"])

    def test_a_file_that_names_cuda_itself(self) -> None:
        oracle = self.open(HALF)
        operations = [node["op"] for node in oracle.description["graph"]["nodes"]]
        print(f"  operations: {operations}")
        self.assertFalse([name for name in operations if "cuda" in name or "cudnn" in name])
        slot = oracle.make_slot()
        oracle.fill(slot)
        q, k, v = (tensor.double() for tensor in slot.inputs)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 32**0.5, -1)
        slot.outputs[0].copy_(weights @ v)
        self.assertEqual(oracle.compare(slot)["outputs"][0]["outside"], 0)

    def test_a_large_problem(self) -> None:
        begin = time.monotonic()
        oracle = self.open(HUGE)
        print(f"  loaded in {time.monotonic() - begin:.1f} s")
        slots = [oracle.make_slot(), oracle.make_slot()]
        for with_truth in (True, True, False):
            begin = time.monotonic()
            oracle.fill(slots[0], with_truth=with_truth)
            print(f"  filled in {time.monotonic() - begin:.2f} s, truth: {with_truth}")
        oracle.fill(slots[1], seed=2)
        slots[0].outputs[0].copy_(slots[0].inputs[0].clamp_min(0))
        torch.cuda.empty_cache()
        begin = time.monotonic()
        self.assertEqual(oracle.compare(slots[0])["outputs"][0]["outside"], 0)
        print(f"  compared in {time.monotonic() - begin:.2f} s")
        for mode in ("plain", "graph"):
            oracle.ring(slots, mode)
            print(f"  {mode}: {oracle.ring(slots, mode) / 2e6:.3f} ms a call")
        print(f"  {oracle.ask('device')}")

    def test_a_problem_that_does_not_fit(self) -> None:
        with DeviceOracle(TOO_LARGE) as oracle, self.assertRaises(Refused) as refused:
            oracle.load()
            oracle.fill(oracle.make_slot())
        print(f"  {refused.exception}")
        self.assertRegex(str(refused.exception), "more are needed and .* free")

    def test_recurrent_weights_lie_together(self) -> None:
        oracle = self.open(RECURRENT)
        problem = load(Options(oracle.path, device=DEVICE), lambda _: None)
        tensors = [t.clone() for t in problem.draw(1)[0] + problem.state()]
        bound = BoundModel(problem, tensors)
        blocks = {w.untyped_storage().data_ptr() for w in bound.model.lstm.parameters()}
        self.assertEqual(len(blocks), 1)
        for tensor in tensors:
            tensor.mul_(0.5)
        bound.restore()
        names = [spec.name for spec in problem.inputs[1:]]
        state = dict(zip(names, tensors[1:], strict=True))
        expected = torch.func.functional_call(problem.model, state, (tensors[0],))
        self.assertTrue(torch.allclose(bound(), expected, atol=1e-5))
        oracle.ring([oracle.make_slot()])


class OneLine(unittest.TextTestResult):
    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.began = time.monotonic()

    def line(self, test: unittest.TestCase, how: str) -> None:
        name = test.id().split(".")[-1]
        print(f"{how} {name} ({time.monotonic() - self.began:.1f} s)", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        super().addSuccess(test)
        self.line(test, "ok")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:
        super().addFailure(test, err)  # type: ignore[arg-type]
        self.line(test, "FAILED")

    def addError(self, test: unittest.TestCase, err: object) -> None:
        super().addError(test, err)  # type: ignore[arg-type]
        self.line(test, "FAILED")


def main() -> int:
    torch.set_grad_enabled(False)
    print(f"{torch.cuda.get_device_name(DEVICE)}, torch {torch.__version__}")
    suite = unittest.TestSuite()
    for case in (device_oracle_test.OnDevice, OnlyOnDevice):
        for name in unittest.defaultTestLoader.getTestCaseNames(case):
            if len(sys.argv) == 1 or name in sys.argv[1:]:
                suite.addTest(case(name))
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=0, resultclass=OneLine)
    return 0 if runner.run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
