# SPDX-License-Identifier: Apache-2.0
"""The library's forms of a problem, run as the model runner does, against the problem's Model.

The processor plays the device: torch.compile generates C++ there, which is called in the same way,
and nothing is replayed from a graph.
"""

from __future__ import annotations

import os
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

from with_torch import SOURCE, torch

sys.path.insert(0, os.path.join(SOURCE, "py", "kernelevolve"))
from binding import BoundModel  # noqa: E402
from library_forms import Recorder, described, library_forms  # noqa: E402
from problem import Options, load, seed_everything  # noqa: E402

torch.set_grad_enabled(False)

TRAINED = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.tied = torch.nn.Linear(width, width)
        self.tied.weight = self.first.weight
        self.norm = torch.nn.BatchNorm1d(width)

    def forward(self, x, y, scale):
        z = self.norm(self.tied(torch.relu(self.first(x))) * scale)
        return z + y, z.sum(dim=1)

def get_inputs():
    return [torch.rand(16, 8), torch.rand(16, 8), 0.5]

def get_init_inputs():
    return [8]
"""

RECURRENT = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRU(4, 6, 2)

    def forward(self, x):
        return self.cell(x)[0]

def get_inputs():
    return [torch.rand(5, 3, 4)]

def get_init_inputs():
    return []
"""

REPLACING = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.hidden = torch.ones(2, 4)

    def forward(self, x):
        self.hidden = torch.tanh(self.linear(x) + self.hidden)
        return self.hidden

def get_inputs():
    return [torch.rand(2, 4)]

def get_init_inputs():
    return []
"""

CONVOLVING = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = torch.nn.Conv2d(3, 4, 3, groups=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.deep = torch.nn.ConvTranspose3d(4, 2, 2, stride=2)

    def forward(self, x):
        y = torch.relu(self.norm(self.flat(x)))
        return self.deep(y[:, :, None]), y

def get_inputs():
    return [torch.rand(2, 3, 6, 7)]

def get_init_inputs():
    return []
"""

DRAWING = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        start = torch.randn(x.shape)
        x = torch.nn.functional.dropout(x + start, 0.25, True)
        start += 1
        return x * torch.rand_like(x) + 1

def get_inputs():
    return [torch.rand(2, 4)]

def get_init_inputs():
    return []
"""


class LibraryForms(unittest.TestCase):
    def forms_of(self, text: str, reassigned: set[str] = frozenset()) -> tuple[Any, list[Any]]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "problem.py"
        path.write_text(text)
        problem = load(Options(path=str(path), device="cpu", seed=3), lambda _: None)
        problem.reassigned |= set(reassigned)
        torch._dynamo.reset()
        recorder = Recorder()
        compiled = torch.compile(lambda model, *a: model(*a), backend=recorder.backend)
        arguments, _ = problem.draw(5)
        bound = BoundModel(problem, [t.clone() for t in arguments + problem.state()])
        result = compiled(bound.model, *bound.arguments)
        problem.outputs = described(result)
        return problem, library_forms(problem, text, recorder.take(bound))

    def check(self, problem: Any, form: dict[str, str]) -> None:
        """Twice with one object: with other contents of the same tensors in between."""
        module = types.ModuleType("kernelevolve_candidate")
        exec(compile(form["source"], "kernel.py", "exec"), module.__dict__)  # noqa: S102
        seed_everything(0)
        candidate = module.ModelNew(*problem.module.get_init_inputs())
        tensors = [t.clone() for t in problem.draw(7)[0] + problem.state()]
        specs = [spec for spec in problem.inputs if spec.kind != "argument"]
        state = tensors[problem.argument_count() :]
        for spec, tensor in zip(specs, state, strict=True):
            path, _, last = spec.name.rpartition(".")
            is_parameter = spec.kind == "parameter"
            value = torch.nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor
            for name, owner in candidate.named_modules():  # and wherever else it is tied to
                if name == path or (name == "tied" and spec.name == "first.weight"):
                    setattr(owner, last, value)
        arguments = problem.call_arguments(tensors[: problem.argument_count()])
        for _ in range(2):
            bound = BoundModel(problem, [t.clone() for t in tensors])
            want = torch.utils._pytree.tree_leaves(bound.model(*bound.arguments))
            kept = [t.clone() for t in tensors]
            got = torch.utils._pytree.tree_leaves(candidate(*arguments))
            self.assertEqual(len(got), len(want))
            for a, b in zip(got, want, strict=True):
                self.assertIs(type(a), torch.Tensor)
                self.assertEqual(a.stride(), b.stride())
                torch.testing.assert_close(a, b)
            for tensor, value in zip(tensors, kept, strict=True):
                tensor.copy_(value * 1.5 if tensor.is_floating_point() else value)

    def test_compiled_kernels_and_the_model_itself_find_weights_where_they_are(self) -> None:
        problem, forms = self.forms_of(TRAINED)
        self.assertEqual([form["name"] for form in forms], ["torch.compile"])
        self.assertTrue(forms[0]["source"].startswith("# ke:origin torch.compile\n"))
        self.check(problem, forms[0])
        eager = library_forms(problem, TRAINED, None)
        self.assertEqual([form["name"] for form in eager], ["eager"])
        self.check(problem, eager[0])

    def test_recurrent_layers_do_not_keep_copies_of_their_weights(self) -> None:
        problem, forms = self.forms_of(RECURRENT)
        self.check(problem, forms[-1])

    def test_attributes_that_forward_replaces_begin_anew(self) -> None:
        problem, forms = self.forms_of(REPLACING, {"hidden"})
        self.assertEqual([form["name"] for form in forms], ["eager"])  # it has an unknown argument
        self.check(problem, forms[0])

    def test_convolutions_have_their_channels_last_in_between(self) -> None:
        problem, forms = self.forms_of(CONVOLVING)
        self.assertEqual(
            [form["name"] for form in forms], ["torch.compile", "eager, channels last"]
        )
        self.check(problem, forms[1])

    def test_what_forward_draws_is_handed_in(self) -> None:
        problem, _ = self.forms_of(DRAWING)
        (form,) = library_forms(problem, DRAWING, None, ["normal_", "bernoulli_", "uniform_"])
        module = types.ModuleType("kernelevolve_candidate")
        exec(compile(form["source"], "kernel.py", "exec"), module.__dict__)  # noqa: S102
        x, start = torch.rand(2, 4), torch.randn(2, 4)
        noise, scale = torch.rand(2, 4) < 0.5, torch.rand(2, 4)
        for candidate in (module.ModelNew(), module.ModelNew().train()):
            kept = start.clone()
            got = candidate(x, start, noise, scale)
            torch.testing.assert_close(got, (x + start) * noise / 0.75 * scale + 1)
            self.assertTrue(torch.equal(start, kept), "what is handed in is not written")

    def test_draws_that_cannot_be_handed_in_leave_none(self) -> None:
        problem, _ = self.forms_of(REPLACING)
        self.assertEqual(library_forms(problem, REPLACING, None, ["random_"]), [])


if __name__ == "__main__":
    unittest.main()
