# SPDX-License-Identifier: Apache-2.0
"""The oracle on a device, by its requests; as a ctest with the driver played on the processor."""

from __future__ import annotations

import gc
import os
import unittest
from typing import ClassVar

from device_oracle import DEVICE, DeviceOracle, MappedSlot, Refused, torch, wait

LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, 12)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.randn(40, 24)]
def get_init_inputs():
    return [24]
"""
SEVERAL = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, index, scale):
        picked = x[index] * scale
        return picked, {"larger": picked > 0, "index": index + 1}
def get_inputs():
    return [torch.randn(50, 3), torch.randint(0, 50, (20,)), 2.5]
def get_init_inputs():
    return []
"""
CHANGING = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))
        self.last = torch.zeros(4)
    def forward(self, x):
        x.mul_(2)
        self.count.add_(1)
        self.last = self.last + x[0]
        return x + self.count + self.last
def get_inputs():
    return [torch.rand(6, 4) + 1]
def get_init_inputs():
    return []
"""
DRAWING = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        x = torch.nn.functional.dropout(x, 0.25, training=True)
        return torch.native_dropout(x, 0.5, True)[0] + torch.randn_like(x)
def get_inputs():
    return [torch.randn(16, 8)]
def get_init_inputs():
    return []
"""
ELSEWHERE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(8.0).cpu()
    def forward(self, x):
        return x + self.table.to(x.device)
def get_inputs():
    return [torch.ones(4, 8, device="cpu") * torch.rand(4, 8).cpu()]
def get_init_inputs():
    return []
"""
ROOTS = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sqrt(1 - x * x)
def get_inputs():
    return [torch.rand(64, 64)]
def get_init_inputs():
    return []
"""
LARGE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(1 << 20)]
def get_init_inputs():
    return []
"""


def relu_of_linear(slot: MappedSlot) -> torch.Tensor:
    x, weight, bias = (tensor.double() for tensor in slot.inputs)
    return torch.relu(x @ weight.T + bias)


def copies(slot: MappedSlot) -> list[torch.Tensor]:
    wait()
    return [tensor.clone() for tensor in slot.inputs]


class OnDevice(unittest.TestCase):
    shared: ClassVar[dict[str, DeviceOracle]] = {}

    @classmethod
    def tearDownClass(cls) -> None:
        for oracle in cls.shared.values():
            oracle.__exit__()
        cls.shared.clear()

    def share(self, source: str) -> DeviceOracle:
        """An oracle that several tests use, since each takes seconds to start."""
        if source not in self.shared:
            self.shared[source] = DeviceOracle(source).load()
        return self.shared[source]

    def open(self, source: str, **options: object) -> DeviceOracle:
        oracle = DeviceOracle(source, **options)
        self.addCleanup(oracle.__exit__)
        return oracle.load()

    def assertRight(self, oracle: DeviceOracle, slot: MappedSlot) -> None:
        found = oracle.compare(slot)
        for output in found["outputs"]:
            self.assertEqual(output["outside"], 0, output)
            self.assertGreater(output["graded"], output["elements"] // 2)
        self.assertTrue(all(found["canaries"]))

    def test_right_and_wrong_outputs(self) -> None:
        oracle = self.share(LINEAR)
        slot = oracle.make_slot()
        filled = oracle.fill(slot)
        self.assertTrue(filled["float64"])
        self.assertEqual(
            set(filled["truths"][0]),
            {"rms_truth", "pytorch_rms", "pytorch_max", "atol", "rtol", "any_non_finite_kind"},
        )
        expected = relu_of_linear(slot)
        rms = float(expected.square().mean().sqrt())
        self.assertAlmostEqual(filled["truths"][0]["rms_truth"], rms, places=9)
        self.assertGreater(filled["truths"][0]["pytorch_rms"], 0)
        oracle.ask("poison", slot=slot.number, value=0x5A)
        found = oracle.compare(slot)
        self.assertEqual(found["poisoned"], [480])
        self.assertGreater(found["outputs"][0]["outside"], 400)
        slot.outputs[0].copy_(expected)
        self.assertRight(oracle, slot)
        self.assertEqual(oracle.compare(slot)["poisoned"], [0])
        slot.outputs[0][7, 3] += 1
        wrong = oracle.compare(slot)["outputs"][0]
        self.assertEqual((wrong["outside"], wrong["worst_index"]), (1, 7 * 12 + 3))
        self.assertAlmostEqual(wrong["max_abs"], 1, places=5)
        slot.outputs[0][0, 0] = float("nan")
        self.assertEqual(oracle.compare(slot)["outputs"][0]["worst_units"], "inf")

    def test_canaries(self) -> None:
        oracle = self.share(SEVERAL)
        slot = oracle.make_slot()
        oracle.fill(slot)
        for place in ("before", "behind"):
            oracle.ask("poison", slot=slot.number, value=1)
            self.assertEqual(oracle.compare(slot)["canaries"], [True] * 3)
            memory = slot.output_memories[1]  # of booleans, 60 bytes
            at = memory.offset - 1 if place == "before" else memory.offset + memory.nbytes
            memory.all[at] ^= 1
            self.assertEqual(oracle.compare(slot)["canaries"], [True, False, True], place)

    def test_several_outputs_of_several_types(self) -> None:
        oracle = self.share(SEVERAL)
        self.assertEqual(
            [output["dtype"] for output in oracle.description["outputs"]],
            ["float32", "boolean", "int64"],
        )
        slot = oracle.make_slot()
        for kind in ("nominal", "scaled", "planted", "tied", "mantissa_tail", "special"):
            oracle.fill(slot, kind, 5)
            oracle.ask("poison", slot=slot.number, value=0xA5)
            x, index = slot.inputs
            picked = x[index] * 2.5
            for output, value in zip(
                slot.outputs, (picked, picked > 0, index + 1), strict=True
            ):
                output.copy_(value)
            self.assertRight(oracle, slot)
            slot.outputs[2][3] += 1
            self.assertEqual(oracle.compare(slot)["outputs"][2]["outside"], 1, kind)

    def test_a_seed_gives_the_same_bytes_again(self) -> None:
        for source in (LINEAR, DRAWING):
            oracle = self.share(source)
            slot, other = oracle.make_slot(), oracle.make_slot()
            for kind in ("nominal", "planted", "mantissa_tail", "special"):
                figures = oracle.fill(slot, kind, 3)
                first = copies(slot)
                oracle.fill(slot, kind, 4)
                argument = (first[0], copies(slot)[0])
                self.assertFalse(torch.equal(*(t.view(torch.uint8) for t in argument)), kind)
                self.assertEqual(oracle.fill(other, kind, 3), figures)
                for a, b in zip(first, copies(other), strict=True):
                    self.assertTrue(torch.equal(a.view(torch.uint8), b.view(torch.uint8)), kind)

    def test_outputs_of_two_slots_are_the_same_or_not(self) -> None:
        oracle = self.share(SEVERAL)
        a, b = oracle.make_slot(), oracle.make_slot()
        for slot in (a, b):
            oracle.fill(slot, with_truth=False)
            oracle.ask("poison", slot=slot.number, value=0)
        self.assertEqual(oracle.ask("same", a=a.number, b=b.number)["same"], [True] * 3)
        b.outputs[0][0, 0] = -0.0
        wait()
        same = oracle.ask("same", a=a.number, b=b.number)["same"]
        self.assertEqual(same, [False, True, True])

    def test_a_content_without_a_truth_is_not_compared(self) -> None:
        oracle = self.share(LINEAR)
        slot = oracle.make_slot()
        self.assertEqual(oracle.fill(slot, with_truth=False)["truths"], [])
        with self.assertRaises(Refused) as refused:
            oracle.compare(slot)
        self.assertEqual(refused.exception.code, "internal")

    def test_what_forward_changes_is_put_back(self) -> None:
        oracle = self.share(CHANGING)
        self.assertEqual(oracle.description["mutated"], ["count", "x"])
        self.assertEqual(oracle.description["reassigned"], ["last"])
        slot = oracle.make_slot()
        oracle.fill(slot)
        before = copies(slot)
        for _ in range(3):
            oracle.ring([slot, slot])
        for a, b in zip(before, copies(slot), strict=True):
            self.assertTrue(torch.equal(a, b))
        x, count = (tensor.double() for tensor in slot.inputs)
        slot.outputs[0].copy_(2 * x + count + 1 + 2 * x[0])
        self.assertRight(oracle, slot)

    def test_draws_are_inputs(self) -> None:
        oracle = self.share(DRAWING)
        kinds = [spec["kind"] for spec in oracle.description["inputs"]]
        self.assertEqual(kinds, ["argument", "random", "random", "random"])
        slot = oracle.make_slot()
        oracle.fill(slot)
        x, first, second, noise = slot.inputs
        self.assertEqual((first.dtype, second.dtype), (torch.bool, torch.bool))
        slot.outputs[0].copy_(x * (first / 0.75) * (second / 0.5) + noise)
        self.assertRight(oracle, slot)
        oracle.ring([slot])

    def test_narrow_types(self) -> None:
        for name, dtype in (("fp16", torch.float16), ("bf16", torch.bfloat16)):
            oracle = self.open(LINEAR, dtype=name)
            slot = oracle.make_slot()
            oracle.fill(slot)
            self.assertEqual({t.dtype for t in slot.inputs + slot.outputs}, {dtype})
            slot.outputs[0].copy_(relu_of_linear(slot))
            self.assertRight(oracle, slot)
            slot.outputs[0][2, 2] += 0.5
            self.assertEqual(oracle.compare(slot)["outputs"][0]["outside"], 1)

    def test_what_the_file_makes_elsewhere_is_moved(self) -> None:
        oracle = self.open(ELSEWHERE)
        self.assertEqual(oracle.description["graph_error"], "")
        slot = oracle.make_slot()
        oracle.fill(slot)
        slot.outputs[0].copy_(slot.inputs[0] + torch.arange(8.0, device=DEVICE))
        self.assertRight(oracle, slot)

    def test_a_result_elsewhere_is_refused(self) -> None:
        text = ELSEWHERE.replace("return x + self.table.to(x.device)", "return x.to('meta')")
        with DeviceOracle(text) as oracle, self.assertRaises(Refused) as refused:
            oracle.load()
        self.assertRegex(str(refused.exception), f"invalid: .* lies on meta; make it on {DEVICE}")

    def test_a_probe_that_leaves_the_domain_stays_inside_it_again(self) -> None:
        oracle = self.open(ROOTS)
        slot, other = oracle.make_slot(), oracle.make_slot()
        oracle.fill(slot, "planted", 2)
        self.assertLessEqual(float(slot.inputs[0].max()), 1)
        oracle.fill(other, "planted", 2)
        self.assertTrue(torch.equal(slot.inputs[0], other.inputs[0]))
        slot.outputs[0].copy_(torch.sqrt(1 - slot.inputs[0].double().square()))
        self.assertRight(oracle, slot)

    def test_the_compiled_baseline(self) -> None:
        oracle = self.share(CHANGING)
        changes = {"mutated": ["count", "x"], "reassigned": ["last"]}
        oracle.ask("build", oracle.compiling, **changes, draws=[])
        first, second = oracle.make_slot(), oracle.make_slot()
        for slot in (first, second):
            oracle.fill(slot, with_truth=False)
        before = copies(first)
        numbers = [first.number, second.number]
        oracle.ask("share", slots=numbers)
        for _ in range(2):
            oracle.ring([first, second], channel=oracle.compiling)
        oracle.ask("drop_slot", slot=first.number)
        oracle.ring([second], channel=oracle.compiling)
        for a, b in zip(before, copies(first), strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_a_graph_of_the_baseline(self) -> None:
        oracle = self.share(CHANGING)
        slots = [oracle.make_slot(), oracle.make_slot()]
        for slot in slots:
            oracle.fill(slot, with_truth=False)
        if DEVICE == "cpu":
            with self.assertRaises(Refused) as refused:
                oracle.ring(slots, "graph")
            self.assertEqual(refused.exception.code, "unavailable")
        else:
            for _ in range(3):
                self.assertGreater(oracle.ring(slots, "graph"), 0)
            self.assertGreater(oracle.ring(slots), 0)

    def test_memory_of_dropped_slots_comes_back(self) -> None:
        oracle = self.small_device()
        first = oracle.make_slot()
        oracle.fill(first)
        oracle.ring([first])
        oracle.ask("device", measured=True)  # loads libraries, which stay
        free = oracle.ask("device", measured=True)["free_bytes"]
        for _ in range(10):  # 8 MiB each
            slot = oracle.make_slot()
            oracle.fill(slot)
            oracle.ring([slot])
            number = slot.number
            del slot
            gc.collect()
            oracle.ask("drop_slot", slot=number)
        now = oracle.ask("device", measured=True)["free_bytes"]
        self.assertLess(free - now, 1 if DEVICE == "cpu" else 40 << 20)

    def test_a_truth_that_found_no_room_is_made_again(self) -> None:
        oracle = self.small_device()
        slots = [oracle.make_slot(), oracle.make_slot(), oracle.make_slot()]
        figures = [oracle.fill(slot, seed=seed) for seed, slot in enumerate(slots)]
        for seed, slot in enumerate(slots):  # each content is 12 of the 16 MiB for all of them
            slot.outputs[0].copy_(slot.inputs[0] * 2)
            self.assertRight(oracle, slot)
            self.assertEqual(oracle.fill(slot, seed=seed), figures[seed])

    @unittest.skipIf(DEVICE != "cpu", "a device is not small")
    def test_a_full_device(self) -> None:
        oracle = self.small_device()
        slots = []
        with self.assertRaises(Refused) as refused:
            while True:
                slots.append(oracle.make_slot())
        self.assertEqual(len(slots), 8)
        self.assertRegex(
            str(refused.exception),
            r"invalid: .*needs more memory than the device has.* 8 MiB more are needed and "
            r"\d+ MiB of 64 are free; make the problem smaller",
        )
        number = slots.pop().number
        oracle.ask("drop_slot", slot=number)
        oracle.make_slot()

    def small_device(self) -> DeviceOracle:
        os.environ["KE_FAKE_CUDA_MIB"] = "64"
        self.addCleanup(os.environ.pop, "KE_FAKE_CUDA_MIB")
        return self.open(LARGE)

    def test_the_device_is_described(self) -> None:
        facts = self.share(LINEAR).ask("device", measured=True)
        self.assertEqual(
            set(facts),
            {"name", "multiprocessors", "memory_bytes", "free_bytes", "l2_bytes", "capability",
             "driver", "torch", "clock_khz", "bandwidth", "flops_f32"},
        )
        self.assertEqual(facts["torch"], torch.__version__)
        self.assertGreaterEqual(facts["memory_bytes"], facts["free_bytes"])
        for key in ("multiprocessors", "l2_bytes", "clock_khz", "bandwidth", "flops_f32"):
            self.assertGreater(facts[key], 0, key)


if __name__ == "__main__":
    unittest.main()
