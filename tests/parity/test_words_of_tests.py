"""Phrases of errors and warnings that PyTorch's own tests look for, in ours where they are in PyTorch's."""

from __future__ import annotations

import importlib
import re
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

# A program, and a phrase of what it raises or warns of.
PROGRAMS = r"""
F.pixel_shuffle(t.ones(3, 2, 2), 2) @@ divisible by the square of upscale_factor
F.pixel_unshuffle(t.ones(1, 3, 3), 2) @@ expects height to be divisible by downscale_factor
F.channel_shuffle(t.ones(1, 3, 2, 2), 2) @@ Number of channels must be divisible by groups
F.pad(t.ones(1, 1, 2), (5, 5), mode="circular") @@ Padding value causes wrapping around more than once
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 3), align_corners=False) @@ size 2 in last dimension
F.grid_sample(t.ones(2, 1, 2, 2), t.ones(1, 2, 2, 2), align_corners=False) @@ grid and input to have same batch size
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 2), mode="x") @@ to be 'bilinear', 'nearest' or 'bicubic', but got: 'x'
F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 2, 2, 2), padding_mode="x") @@ to be 'zeros', 'border', or 'reflection', but got: 'x'
F.affine_grid(t.ones(1, 2, 2), (1, 1, 2, 2), False) @@ Expected a batch of 2D affine matrices of shape Nx2x3
F.affine_grid(t.ones(1, 2, 3).int(), (1, 1, 2, 2), False) @@ Expected theta to have floating point type
F.interpolate(t.ones(1, 1, 2)) @@ either size or scale_factor should be defined
F.interpolate(t.ones(1, 1, 2), size=(2, 2)) @@ Input and output must have the same number of spatial dimensions
F.interpolate(t.ones(1, 1, 2, 2), size=2, mode="linear") @@ Got 4D input, but linear mode needs 3D input
F.interpolate(t.ones(1, 1, 2), size=2, mode="x") @@ Input Error: Only 3D, 4D and 5D input Tensors supported
F.interpolate(t.ones(1, 1, 2, 2), size=2, mode="lanczos") @@ Lanczos mode requires antialias=True
t.nn.RNN(2, 3)(t.ones(5, 2), t.ones(1, 2, 3)) @@ hx should also be 2-D but got 3-D tensor
t.nn.Linear(2, 2, device="meta").load_state_dict(t.nn.Linear(2, 2).state_dict()) @@ which is a no-op
t.nn.LazyLinear(2).share_memory() @@ Can't share memory on an uninitialized parameter
t.nn.utils.rnn.PackedSequence(t.ones(2), None) @@ Expected data to be a list or tuple of length 2
t.nn.utils.rnn.pad_sequence("abc") @@ expected Tensor as element 0
t.nn.utils.prune.l1_unstructured(t.nn.Linear(2, 2), "weight", amount=-1) @@ should either be a float in the range \[0, 1\]
t.ones(2).expand(-1, 2) @@ The expanded size of the tensor \(-1\) isn't allowed
t.ones(2).index_add(0, t.tensor([0, 1]), t.ones(3)) @@ Number of indices \(2\) should be equal to source.size\(dim\): \(3\)
t.ones(2).index_copy(0, t.tensor([0]), t.ones(1).double()) @@ same dtype, but got \(self\) Float and \(source\) Double
t.ones(2).index_copy(0, t.tensor([0.0]), t.ones(1)) @@ Expected a long tensor for index, but got Float
t.ones(2).index_fill(0, t.tensor([0]), t.ones(2)) @@ index_fill_ only supports a 0-dimensional value tensor
t.ones(2).scatter_reduce(0, t.tensor([0]), t.ones(1), "x") @@ sum, prod, mean, amax or amin, got x
t.ones(2).__setitem__(0, "a") @@ can't assign a str to a torch.FloatTensor
t.ones(2).__setitem__(0, 1j) @@ value cannot be converted to type float without overflow
t.linalg.norm(t.ones(2), "fro") @@ linalg.matrix_norm: The input tensor A must have at least 2 dimensions
t.linalg.tensorinv(t.eye(2), 0) @@ Expected a strictly positive integer for 'ind', but got 0
t.linalg.lstsq(t.ones(2), t.ones(2)) @@ input must have at least 2 dimensions
t.linalg.svd(t.eye(2), driver="gesvd") @@ torch.linalg.svd: keyword argument `driver=` is only supported on CUDA
t.fft.irfftn(t.ones(2), s=()) @@ irfftn must transform at least one axis
t.bernoulli(t.tensor([2.0])) @@ Expected p_in >= 0 && p_in <= 1 to be true
t.from_numpy(np.array(["a"])) @@ can't convert np.ndarray of type numpy.str_
t.from_numpy(np.broadcast_to(np.ones(1), (2,))) @@ The given NumPy array is not writable
t.distributions.Binomial(-1, t.ones(2), validate_args=True) @@ Expected parameter total_count
t.utils.data.random_split([1, 2], [0.5, 1.5]) @@ TypeError
"""


for library in ("torch", "rushlight"):
    importlib.import_module(f"{library}.nn.utils.prune")


def told(t: Any, program: str) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(program, {"t": t, "F": t.nn.functional, "np": np})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "".join(f"{w.category.__name__}: {w.message}" for w in caught)


@pytest.mark.parametrize("line", PROGRAMS.strip().splitlines())
def test_the_phrase_is_there(line: str) -> None:
    program, phrase = line.split(" @@ ")
    ours, theirs = told(rushlight, program), told(reference, program)
    assert re.search(phrase, theirs), theirs
    assert re.search(phrase, ours), ours
    assert ours.split(":")[0] == theirs.split(":")[0]
