"""safetensors files, and the advice where the library is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight.serialization.safetensors import load_file, save_file
from rushlight.tensor import wrap


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool])
def test_round_trip(dtype, tmp_path):
    pytest.importorskip("safetensors")
    x = wrap(np.array([[1, 0], [3, 1]], dtype.numpy))
    tensors = {"x": x, "reversed": wrap(x._array[::-1]), "transposed": wrap(x._array.T), "scalar": wrap(x._array[0, 0])}
    save_file(tensors, tmp_path / "x.safetensors", {"by": "test"})
    again = load_file(tmp_path / "x.safetensors")
    assert again.keys() == tensors.keys()
    for name, t in tensors.items():
        assert again[name].dtype is dtype and again[name].shape == t.shape
        assert np.array_equal(again[name]._array, t._array)


def test_refusals(tmp_path):
    pytest.importorskip("safetensors")
    with pytest.raises(ValueError, match="'x' must be a Tensor"):
        save_file({"x": np.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(RuntimeError, match="device"):
        load_file(tmp_path / "x.safetensors", device="cuda")
    with pytest.raises(FileNotFoundError):
        load_file(tmp_path / "x.safetensors")


def test_without_the_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rushlight\[safetensors\]"):
        load_file(tmp_path / "x.safetensors")
