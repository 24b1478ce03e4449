"""Runs a program with random numbers that NumPy draws: the same under PyTorch and under rushlight, whose own differ.

    python same_draws.py PROGRAM.py [ARGUMENTS]
    python same_draws.py COMMANDS.json      # several, in one process

Only where numbers come from is replaced; the program is run as it is.  With OWN_DRAWS set not even that.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys

import numpy as np
import torch

_source = np.random.default_rng(0)


def _into(t, array):
    """Numbers written over a tensor, whatever its dtype."""
    with torch.no_grad():
        return t.copy_(torch.from_numpy(np.ascontiguousarray(array)).to(t.dtype))


def _fresh(array, dtype=None, requires_grad=False):
    t = torch.from_numpy(np.ascontiguousarray(array)).to(dtype or torch.get_default_dtype())
    return t.requires_grad_() if requires_grad else t


def _sizes(shape):
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape


def _manual_seed(seed):
    global _source
    _source = np.random.default_rng(seed)
    return _seeded(seed)


def _randint(low, high=None, size=None, **options):
    if size is None:
        low, high, size = (0, low, high)
    return _fresh(_source.integers(low, high, size=tuple(size)), options.get("dtype") or torch.int64)


def _multinomial(weights, count, replacement=False, **options):
    rows = weights.detach().double().reshape(-1, weights.shape[-1]).numpy()
    drawn = [_source.choice(len(row), count, replacement, row / row.sum()) for row in rows]
    return torch.from_numpy(np.array(drawn, dtype=np.int64)).reshape(*weights.shape[:-1], count)


def _dropout(input, p=0.5, training=True, inplace=False):
    if not training or p == 0:
        return input
    return input * _fresh(_source.random(tuple(input.shape)) >= p, input.dtype) / (1 - p)


def _order(self):
    """What a RandomSampler gives."""
    return iter(_source.permutation(len(self.data_source)).tolist())


def _weighted(self):
    """What a WeightedRandomSampler gives."""
    return iter(_multinomial(self.weights, self.num_samples, self.replacement).tolist())


def _split(dataset, lengths, **options):
    """What random_split gives."""
    order, ends = _source.permutation(len(dataset)).tolist(), np.cumsum(lengths).tolist()
    return [torch.utils.data.Subset(dataset, order[end - n : end]) for n, end in zip(lengths, ends, strict=True)]


def _categorical(self, sample_shape=()):
    return _multinomial(self.probs, 1).squeeze(-1)


_seeded = torch.manual_seed
TENSOR = {
    "normal_": lambda t, mean=0.0, std=1.0, **o: _into(t, mean + std * _source.standard_normal(tuple(t.shape))),
    "uniform_": lambda t, a=0.0, b=1.0, **o: _into(t, a + (b - a) * _source.random(tuple(t.shape))),
}
MODULE = {
    "manual_seed": _manual_seed,
    "randn": lambda *shape, dtype=None, requires_grad=False, **o: _fresh(
        _source.standard_normal(_sizes(shape)), dtype, requires_grad
    ),
    "rand": lambda *shape, dtype=None, requires_grad=False, **o: _fresh(
        _source.random(_sizes(shape)), dtype, requires_grad
    ),
    "randn_like": lambda t, **o: _fresh(_source.standard_normal(tuple(t.shape)), t.dtype),
    "rand_like": lambda t, **o: _fresh(_source.random(tuple(t.shape)), t.dtype),
    "randperm": lambda n, **o: _fresh(_source.permutation(n), torch.int64),
    "randint": _randint,
    "multinomial": _multinomial,
}


def replace_draws() -> None:
    """From now on NumPy draws."""
    for name, function in TENSOR.items():
        setattr(torch.Tensor, name, function)
    for name, function in MODULE.items():
        setattr(torch, name, function)
    torch.nn.functional.dropout = _dropout
    torch.nn.Dropout.forward = lambda self, input: _dropout(input, self.p, self.training)
    torch.utils.data.random_split = _split
    torch.utils.data.RandomSampler.__iter__ = _order
    torch.utils.data.WeightedRandomSampler.__iter__ = _weighted
    torch.distributions.Categorical.sample = _categorical


def run(program: str, arguments: list[str]) -> None:
    """The program, as if it had been started by itself."""
    sys.argv = [program, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    runpy.run_path(program, run_name="__main__")


def run_each(commands: list[list[str]]) -> list[str]:
    """What each of several programs prints, one after the other, each beginning with PyTorch's defaults."""
    printed = []
    for program, *arguments in commands:
        torch.set_default_dtype(torch.float32)
        torch.use_deterministic_algorithms(False)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run(program, arguments)
        printed.append(out.getvalue())
    return printed


if __name__ == "__main__":
    import torch.distributions
    import torch.utils.data

    torch.set_num_threads(1)
    if not os.environ.get("OWN_DRAWS"):
        replace_draws()
    if sys.argv[1].endswith(".json"):
        with open(sys.argv[1]) as listed:
            print(json.dumps(run_each(json.load(listed))))
    else:
        run(sys.argv[1], sys.argv[2:])
