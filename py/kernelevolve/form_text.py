# SPDX-License-Identifier: Apache-2.0
"""The pieces of text that library_forms.py puts together; those with {names} are formatted."""

# Before the generated code: it compiles its kernels in this process, in a folder of its own.
COMPILER_SETTINGS = '''
import os as _os
import tempfile as _tempfile

_os.environ["TORCHINDUCTOR_CACHE_DIR"] = _tempfile.mkdtemp()
import torch._inductor.config

torch._inductor.config.compile_threads = 1

'''

MODULE_HEAD = '''
import torch
from torch.utils import _pytree


def tensors_of(arguments):
    return [x for x in _pytree.tree_flatten(arguments)[0] if isinstance(x, torch.Tensor)]


def same_bytes(a, b):
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


class ModelNew(Model):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.places, self.graphs = [], {}
        for module in self.modules():
            if isinstance(module, torch.nn.RNNBase):  # it would copy its weights, once
                module.flatten_parameters = lambda: None
        for kind in ("_parameters", "_buffers"):
            seen = set()
            for module in self.modules():
                held = getattr(module, kind)
                for name, tensor in held.items():
                    if tensor is not None and id(tensor) not in seen:
                        seen.add(id(tensor))
                        self.places.append((held, name))
'''

# Attributes that forward() replaces are the same before every call.
RESTORING = '''        self.replaced = [
            (module, name, getattr(module, name))
            for module in self.modules()
            for name in {names}
            if hasattr(module, name)
        ]

    def restore(self):
        for module, name, value in self.replaced:
            setattr(module, name, value)
'''

CALLING_MODEL = '''
    def call_model(self, arguments):
        return super().forward(*arguments)
'''

CALLING_DRAWING_MODEL = '''
    def call_model(self, arguments):
        with GivenDraws(arguments[-{drawn}:]):
            return super().forward(*arguments[:-{drawn}])
'''

# Behind ModelNew. Dropout as draws.py records it: by its noise.
GIVEN_DRAWS = '''

from torch.utils._python_dispatch import TorchDispatchMode


class GivenDraws(TorchDispatchMode):
    """Where the model draws random numbers, it gets those that were handed in, in their order."""

    def __init__(self, numbers):
        super().__init__()
        self.left = list(numbers)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name in ("rand", "randn", "rand_like", "randn_like"):
            return self.left.pop(0).clone()
        if name in ("uniform_", "normal_", "bernoulli_"):
            return args[0].copy_(self.left.pop(0))
        if name == "native_dropout":
            x, rate, train = args
            if not train or rate in (0, 1):
                return (x * (1 - rate if train else 1)), torch.ones_like(x, dtype=torch.bool)
            noise = self.left.pop(0)
            return x * (noise / (1 - rate)), noise
        return func(*args, **kwargs)
'''

CALLING_KERNELS = '''
    def call_model(self, arguments):
        given = tensors_of(arguments)
        state = [held[name] for held, name in self.places]
        results = call([{arguments}])
        return {result}
'''

AS_IT_LIES = '''
    def compute(self, arguments):
        return self.call_model(arguments)
'''

# Weights are converted in each call, like arguments: they may have changed where they lie.
CHANNELS_LAST = '''
    def compute(self, arguments):
        formats = {4: torch.channels_last, 5: torch.channels_last_3d}

        def last(x):
            wanted = isinstance(x, torch.Tensor) and x.dim() in formats
            return x.contiguous(memory_format=formats[x.dim()]) if wanted else x

        kinds = (torch.nn.Conv2d, torch.nn.Conv3d)
        kinds += (torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)
        layers = [module for module in self.modules() if isinstance(module, kinds)]
        given = [layer._parameters["weight"] for layer in layers]
        try:
            for layer, weight in zip(layers, given):
                layer._parameters["weight"] = last(weight)
            results = self.call_model(_pytree.tree_map(last, arguments))
        finally:
            for layer, weight in zip(layers, given):
                layer._parameters["weight"] = weight
        return _pytree.tree_map(
            lambda x: x.contiguous() if isinstance(x, torch.Tensor) else x, results
        )
'''

FORWARD = '''
    def forward(self, *arguments):
        self.restore()
        return self.compute(arguments)
'''

FORWARD_REPLAYED = '''
    def forward(self, *arguments):
        given = tensors_of(arguments)
        if not given or not given[0].is_cuda or torch.cuda.is_current_stream_capturing():
            self.restore()
            return self.compute(arguments)
        return self.replay(arguments, given)
'''

REPLAY = '''
    def replay(self, arguments, given):
        """The same by a captured graph, on copies of the arguments."""
        key = tuple((t.shape, t.stride(), t.dtype) for t in given)
        key += tuple(held[name].data_ptr() for held, name in self.places)
        if key not in self.graphs:
            self.graphs[key] = self.capture(arguments)
        graph, own, results = self.graphs[key]
        for mine, tensor in zip(own, given):
            mine.copy_(tensor)
        graph.replay()
        return _pytree.tree_map(torch.clone, results)

    def capture(self, arguments):
        leaves, tree = _pytree.tree_flatten(arguments)
        leaves = [x.clone() if isinstance(x, torch.Tensor) else x for x in leaves]
        own = _pytree.tree_unflatten(leaves, tree)
        before = [(t, t.clone()) for t in self.buffers()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.restore()
            self.compute(own)  # what happens at first calls only must not be captured
            for tensor, value in before:
                if not same_bytes(tensor, value):
                    tensor.copy_(value)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.restore()
        with torch.cuda.graph(graph):
            results = self.compute(own)
        return graph, tensors_of(own), results
'''
